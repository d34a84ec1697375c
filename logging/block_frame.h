// The frame of a structure that fills one block, or one sector: magic at 0, version at 8, CRC32C of
// the whole of it (itself as zero) at 12. FORMAT.md sections 1 and 2.
#pragma once

#include <cstdint>
#include <span>

#include "proto/units.h"

namespace mariner::logging {

struct BlockKind {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
};

// Fills in magic, version and CRC of a block whose other bytes are in place.
void seal_block(std::span<std::byte> block, BlockKind kind);
[[nodiscard]] bool is_sealed(std::span<const std::byte> block, BlockKind kind);

}  // namespace mariner::logging
