// CRC32C as ext4 has it in its metadata (metadata_csum): not inverted, begun with the file system's
// seed.
#pragma once

#include <cstdint>
#include <span>

#include "proto/crc32c.h"

namespace mariner::ifsck {

[[nodiscard]] inline std::uint32_t ext_crc(std::uint32_t seed, std::span<const std::byte> bytes) {
  return ~crc32c(bytes, ~seed);
}

// Of what belongs to one inode: its number and its generation come first.
[[nodiscard]] inline std::uint32_t ext_inode_seed(std::uint32_t seed, std::uint32_t number,
                                                  std::uint32_t generation) {
  const std::uint32_t words[] = {number, generation};
  return ext_crc(seed, std::as_bytes(std::span(words)));
}

}  // namespace mariner::ifsck
