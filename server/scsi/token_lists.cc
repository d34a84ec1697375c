#include "server/scsi/token_lists.h"

#include <algorithm>
#include <optional>

#include "proto/bytes.h"
#include "server/scsi/rod_tokens.h"

namespace mariner::scsi {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Extents = std::variant<Sense, std::vector<Extent>>;

constexpr std::size_t kPopulateHeaderBytes = 16;
constexpr std::size_t kWriteHeaderBytes = 536;
constexpr std::size_t kRangeBytes = 16;
constexpr std::uint8_t kImmediate = 0x01;
constexpr std::uint8_t kRodTypeValid = 0x02;
constexpr std::uint8_t kDeleteToken = 0x02;

constexpr std::uint16_t at(std::size_t byte) { return static_cast<std::uint16_t>(byte); }

Bytes as_bytes(std::span<const std::byte> list) {
  return {reinterpret_cast<const std::uint8_t*>(list.data()), list.size()};
}

bool any_overlap(std::vector<Extent> extents) {
  std::ranges::sort(extents, {}, &Extent::lba);
  return std::ranges::adjacent_find(extents, [](const Extent& a, const Extent& b) {
           return a.lba + a.blocks > b.lba;
         }) != extents.end();
}

// The block device range descriptors behind a header, whose last two bytes are their length (SBC-4
// 5.12.3). An incomplete one at the end is ignored.
Extents parse_extents(Bytes list, std::size_t header_bytes, const Geometry& geometry) {
  const std::size_t length_at = header_bytes - 2;
  // The data length at the list's beginning counts what is behind it.
  if (load_be<std::uint16_t>(&list[0]) + 2u < header_bytes + kRangeBytes) {
    return invalid_parameter(0);
  }
  const std::size_t said = load_be<std::uint16_t>(&list[length_at]);
  if (said < kRangeBytes) return invalid_parameter(at(length_at));
  const std::size_t count = std::min(said, list.size() - header_bytes) / kRangeBytes;
  if (count > kTokenRangesMax) return illegal_request(asc::kTooManyCopySegments);

  std::vector<Extent> extents;
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = header_bytes + i * kRangeBytes;
    const Extent extent{load_be<std::uint64_t>(&list[from]),
                        load_be<std::uint32_t>(&list[from + 8])};
    if (auto sense = check_extent(extent, geometry)) return *std::move(sense);
    if (extent.blocks > geometry.transfer_blocks_max) return invalid_parameter(at(from + 8));
    if (extent.blocks == 0) continue;
    blocks += extent.blocks;
    extents.push_back(extent);
  }
  if (blocks > kTokenBytesMax / geometry.block_bytes) return invalid_parameter(at(length_at));
  if (any_overlap(extents)) return invalid_parameter(at(header_bytes));
  return extents;
}

// What kind of token may be asked for: each is a point in time that later writes do not change.
bool can_make(RodType type) {
  return type == RodType::kPointInTimeDefault || type == RodType::kPointInTimeAny;
}

}  // namespace

std::variant<Sense, PopulateList> parse_populate_list(std::span<const std::byte> bytes,
                                                      const Geometry& geometry) {
  const Bytes list = as_bytes(bytes);
  if (list.size() < kPopulateHeaderBytes) return illegal_request(asc::kParameterListLengthError);
  auto extents = parse_extents(list, kPopulateHeaderBytes, geometry);
  if (const auto* wrong = std::get_if<Sense>(&extents)) return *wrong;
  PopulateList populate;
  populate.immediate = (list[2] & kImmediate) != 0;
  const std::chrono::seconds asked{load_be<std::uint32_t>(&list[4])};
  if (asked > RodTokens::kInactivityMax) return invalid_parameter(4);
  populate.inactivity = asked.count() == 0 ? RodTokens::kInactivityDefault : asked;
  if ((list[2] & kRodTypeValid) != 0 &&
      !can_make(static_cast<RodType>(load_be<std::uint32_t>(&list[8])))) {
    return invalid_parameter(8);
  }
  populate.extents = std::get<std::vector<Extent>>(std::move(extents));
  return populate;
}

std::variant<Sense, WriteList> parse_write_list(std::span<const std::byte> bytes,
                                                const Geometry& geometry) {
  const Bytes list = as_bytes(bytes);
  if (list.size() < kWriteHeaderBytes) return illegal_request(asc::kParameterListLengthError);
  auto extents = parse_extents(list, kWriteHeaderBytes, geometry);
  if (const auto* wrong = std::get_if<Sense>(&extents)) return *wrong;
  WriteList write;
  write.immediate = (list[2] & kImmediate) != 0;
  write.delete_token = (list[2] & kDeleteToken) != 0;
  write.offset_blocks = load_be<std::uint64_t>(&list[8]);
  std::ranges::copy(list.subspan(16, write.token.size()), write.token.begin());
  write.extents = std::get<std::vector<Extent>>(std::move(extents));
  return write;
}

}  // namespace mariner::scsi
