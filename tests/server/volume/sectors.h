// Contents of a small volume as one number for each sector of 512 bytes: what a model remembers
// instead of bytes. On disk a sector is filled with its number; 0 is a sector of zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/payload.h"
#include "proto/units.h"

namespace mariner::test {

inline constexpr std::uint64_t kSectorBytes = 512;
inline constexpr std::uint64_t kSectorsPerBlock = kBlockBytes / kSectorBytes;

using Sectors = std::vector<std::uint64_t>;

// The bytes of these sectors.
Payload bytes_of(std::span<const std::uint64_t> sectors);

// The first sector of `bytes` that is not filled with its number in `expected` (of equal length).
std::optional<std::size_t> mismatch(std::span<const std::byte> bytes,
                                    std::span<const std::uint64_t> expected);

// The sectors of `range`, which is a multiple of whole sectors.
std::span<const std::uint64_t> part_of(const Sectors& sectors, ByteRange range);
std::span<std::uint64_t> part_of(Sectors& sectors, ByteRange range);

}  // namespace mariner::test
