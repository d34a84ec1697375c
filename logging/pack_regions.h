// Gathers bytes into the regions of a pack, compresses and appends them. PACK.md section 1.
//
// Two regions are open at a time: one for what stands between payloads, one for payloads. Each is
// closed when what comes next does not fit into it. Of one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logging/pack_builder.h"
#include "logging/pack_codec.h"
#include "logging/pack_table.h"
#include "proto/error.h"

namespace mariner::logging {

// A block that is read alone has its whole region decompressed: from 128 KiB to 64 this halves, and
// a pack grows by 2 to 5 %.
inline constexpr std::uint32_t kPackRegionBytes = 64u << 10;  // plain, that are gathered

class PackRegions {
 public:
  enum class Stream : std::uint8_t { kHeaders, kPayloads };
  struct Place {
    std::uint32_t region = 0;
    std::uint32_t offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  PackRegions(PackSink& sink, int level);

  // All bytes, at most kPackRegionBytes, go into one region.
  [[nodiscard]] Result<Place> add(Stream stream, std::span<const std::byte> bytes);
  // The same, of the block of which they are the delta.
  [[nodiscard]] Result<Place> add_delta(std::span<const std::byte> delta);

  // The number of the open region of payloads; when none is open, of the next one.
  [[nodiscard]] std::uint32_t payload_region() const;
  // What a block that stands plain has come to lately, compressed with those around it.
  [[nodiscard]] std::uint32_t block_cost() const { return block_cost_; }

  // Closes what is open. Nothing may follow.
  [[nodiscard]] Result<std::vector<PackRegion>> finish();

 private:
  static constexpr std::uint32_t kClosed = UINT32_MAX;
  struct Open {
    std::uint32_t region = kClosed;
    std::vector<std::byte> bytes;
    std::size_t delta_bytes = 0;  // of them
  };

  Open& open(Stream stream) { return open_[static_cast<std::size_t>(stream)]; }
  Result<void> close(Stream stream);
  void learn_cost(const Open& region, std::size_t stored_bytes);

  PackSink& sink_;
  PackCompressor compressor_;
  std::array<Open, 2> open_;
  std::vector<std::byte> compressed_;
  std::vector<PackRegion> regions_;
  std::uint64_t end_ = 0;  // of the pack so far
  std::uint32_t block_cost_ = kBlockBytes / 2;
};

}  // namespace mariner::logging
