// The tracks that go into a pack, and where their bytes come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::logging {

inline constexpr std::uint64_t kNoBlock = UINT64_MAX;

// Payload blocks that stand one behind the other in a track.
struct PackBlocks {
  std::uint32_t at = 0;  // byte offset in the track, a multiple of 512
  std::uint32_t blocks = 0;
  VolumeId volume{};
  std::uint64_t lbn = kNoBlock;  // of the first, the others follow; kNoBlock: not known

  [[nodiscard]] std::uint64_t end() const { return at + std::uint64_t{blocks} * kBlockBytes; }
};

// A complete track.
struct PackTrack {
  std::uint64_t bytes = 0;  // its length, at most kPackTrackBytesMax
  std::uint64_t used = 0;   // to the end of its last batch; what lies behind reads as zeros
  // Ascending, apart, within `used`. What lies between them is header areas.
  std::vector<PackBlocks> payloads;
};

class PackSource {
 public:
  PackSource() = default;
  PackSource(const PackSource&) = delete;
  PackSource& operator=(const PackSource&) = delete;
  virtual ~PackSource() = default;

  // Fills `to` with the track's bytes from `offset` on. Blocking. `offset`, length and memory are
  // aligned to 4096; only a read that reaches the end of the track may be shorter.
  virtual Result<void> read(std::size_t track, std::uint64_t offset, std::span<std::byte> to) = 0;
};

// Called every few hundred KiB of work: to slow it down, or to end it with an error. May be empty.
using PackPause = std::function<Result<void>()>;

}  // namespace mariner::logging
