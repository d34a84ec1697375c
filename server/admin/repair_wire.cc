#include "server/admin/repair_wire.h"

#include <string>

#include "proto/bytes.h"

namespace mariner::admin {

Result<std::vector<RepairedBlock>> parse_repairs(std::string_view records) {
  if (records.size() % kRepairRecordBytes != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "repaired blocks: expected records of " + std::to_string(kRepairRecordBytes) +
                     " bytes, found " + std::to_string(records.size()) + " bytes"};
  }
  const std::size_t count = records.size() / kRepairRecordBytes;
  if (count > kRepairRecordsMax) {
    return Error{ErrorCode::kLimit, "repaired blocks: at most " +
                                        std::to_string(kRepairRecordsMax) +
                                        " in one request, found " + std::to_string(count)};
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(records));
  std::vector<RepairedBlock> out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto record = bytes.subspan(i * kRepairRecordBytes, kRepairRecordBytes);
    const Lbn block{load_le<std::uint64_t>(record.data())};
    if (!out.empty() && block <= out.back().block) {
      return Error{ErrorCode::kInvalidArgument,
                   "repaired blocks: expected ascending numbers, found " +
                       std::to_string(block.value) + " behind " +
                       std::to_string(out.back().block.value)};
    }
    out.push_back({block, record.subspan(8)});
  }
  return out;
}

}  // namespace mariner::admin
