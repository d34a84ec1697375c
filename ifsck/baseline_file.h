// A baseline as a file (FORMAT.md): what the next check begins with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/overlay.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct KeptBaseline {
  std::array<std::uint8_t, 16> uuid{};  // of the file system
  std::uint64_t volume_bytes = 0;
  std::uint32_t descriptor_bytes = 0;  // of a group
  VersionTime time;                    // of the moment
  Baseline baseline;
  // What the moment was mended with before it was sound, as by the replay of its journal.
  Overlay overlay;
  friend bool operator==(const KeptBaseline&, const KeptBaseline&) = default;
};

[[nodiscard]] std::vector<std::byte> pack_baseline(const KeptBaseline& kept);
// kCorrupt, naming what is wrong.
[[nodiscard]] Result<KeptBaseline> parse_baseline(std::span<const std::byte> bytes);
// The bytes are there as long as `owner` is; tables are not copied out of them.
[[nodiscard]] Result<KeptBaseline> parse_baseline(std::span<const std::byte> bytes,
                                                  const std::shared_ptr<const void>& owner);

// In the place of what the file was, whole, or not at all. kIo.
[[nodiscard]] Result<void> write_baseline(const std::string& path, const KeptBaseline& kept);
// kNotFound, kIo, kCorrupt.
[[nodiscard]] Result<KeptBaseline> read_baseline(const std::string& path);

}  // namespace mariner::ifsck
