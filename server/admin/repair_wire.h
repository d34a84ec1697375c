// Repaired blocks as bytes, in a request and in the file that `ifsck repairs` writes: records of
// the block's number (8 bytes, little-endian) and its contents. API.md, "Repairs".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::admin {

inline constexpr std::size_t kRepairRecordBytes = 8 + kBlockBytes;
// Of one request, which is below 1 MiB so.
inline constexpr std::size_t kRepairRecordsMax = 255;

struct RepairedBlock {
  Lbn block;
  std::span<const std::byte> bytes;  // kBlockBytes, of what was parsed
};

// kInvalidArgument: no whole records, or the blocks do not ascend. kLimit: more than
// kRepairRecordsMax.
[[nodiscard]] Result<std::vector<RepairedBlock>> parse_repairs(std::string_view records);

}  // namespace mariner::admin
