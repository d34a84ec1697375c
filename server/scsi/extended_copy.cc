#include "server/scsi/extended_copy.h"

#include <algorithm>
#include <initializer_list>

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kTargetBytes = 32;
constexpr std::size_t kSegmentBytes = 28;
constexpr std::size_t kDesignatorBytesMax = 20;

constexpr std::uint16_t at(std::size_t byte) { return static_cast<std::uint16_t>(byte); }

std::variant<Sense, CopyTarget> parse_target(std::span<const std::uint8_t> list, std::size_t from) {
  const std::uint8_t* p = list.data() + from;
  if (p[0] != kCopyTargetCode) return illegal_request(asc::kUnsupportedCopyTargetDescriptor);
  // LU ID TYPE says nothing here: the designator names the unit.
  CopyTarget target;
  target.null = (p[1] & 0x20) != 0;
  target.type = p[5] & 0x0F;
  const std::size_t bytes = p[7];
  if (bytes > kDesignatorBytesMax) return invalid_parameter(at(from + 7));
  target.designator.assign(p + 8, p + 8 + bytes);
  target.block_bytes = load_be24(p + 29);
  return target;
}

std::variant<Sense, CopySegment> parse_segment(std::span<const std::uint8_t> list,
                                               std::size_t from) {
  const std::uint8_t* p = list.data() + from;
  if (p[0] != kCopySegmentCode) return illegal_request(asc::kUnsupportedCopySegmentDescriptor);
  if (load_be<std::uint16_t>(p + 2) != kSegmentBytes - 4) return invalid_parameter(at(from + 2));
  CopySegment segment;
  segment.destination_counts = (p[1] & 0x02) != 0;
  segment.source = load_be<std::uint16_t>(p + 4);
  segment.destination = load_be<std::uint16_t>(p + 6);
  segment.blocks = load_be<std::uint16_t>(p + 10);
  segment.source_lba = load_be<std::uint64_t>(p + 12);
  segment.destination_lba = load_be<std::uint64_t>(p + 20);
  return segment;
}

}  // namespace

Sense copy_aborted(AdditionalSense code) { return {SenseKey::kCopyAborted, code}; }

std::variant<Sense, CopyList> parse_copy_list(std::span<const std::byte> bytes) {
  const std::span<const std::uint8_t> list{reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                           bytes.size()};
  const Sense wrong_length = illegal_request(asc::kParameterListLengthError);
  if (list.size() < kHeaderBytes) return wrong_length;
  CopyList copy;
  copy.id = list[0];
  copy.keeps_status = (list[1] & 0x18) != 0x18;
  const std::size_t target_bytes = load_be<std::uint16_t>(&list[2]);
  const std::uint64_t segment_bytes = load_be<std::uint32_t>(&list[8]);
  const std::uint64_t inline_bytes = load_be<std::uint32_t>(&list[12]);
  if (target_bytes + segment_bytes > kCopyListBytesMax) return wrong_length;
  if (target_bytes % kTargetBytes != 0) return invalid_parameter(2);
  if (inline_bytes != 0) return invalid_parameter(12);
  if (kHeaderBytes + target_bytes + segment_bytes > list.size()) return wrong_length;
  if (target_bytes / kTargetBytes > kCopyTargetsMax) {
    return illegal_request(asc::kTooManyCopyTargets);
  }
  for (std::size_t from = kHeaderBytes; from < kHeaderBytes + target_bytes; from += kTargetBytes) {
    auto target = parse_target(list, from);
    if (const auto* sense = std::get_if<Sense>(&target)) return *sense;
    copy.targets.push_back(std::get<CopyTarget>(std::move(target)));
  }
  const std::size_t segments_at = kHeaderBytes + target_bytes;
  // One of another type has another length.
  if (segment_bytes > 0 && list[segments_at] != kCopySegmentCode) {
    return illegal_request(asc::kUnsupportedCopySegmentDescriptor);
  }
  if (segment_bytes % kSegmentBytes != 0) return invalid_parameter(8);
  if (segment_bytes / kSegmentBytes > kCopySegmentsMax) {
    return illegal_request(asc::kTooManyCopySegments);
  }
  for (std::size_t from = segments_at; from < segments_at + segment_bytes; from += kSegmentBytes) {
    const auto segment = parse_segment(list, from);
    if (const auto* sense = std::get_if<Sense>(&segment)) return *sense;
    copy.segments.push_back(std::get<CopySegment>(segment));
  }
  return copy;
}

std::vector<std::uint8_t> copy_status(const CopyStatus& status) {
  Bytes data(12);
  store_be(&data[0], std::uint32_t{8});
  data[4] = static_cast<std::uint8_t>(status.state);
  store_be(&data[5], status.segments_done);
  data[7] = 1;  // the count is in units of 1,024 bytes
  store_be(&data[8],
           static_cast<std::uint32_t>(std::min<std::uint64_t>(status.bytes >> 10, 0xFFFF'FFFF)));
  return data;
}

std::vector<std::uint8_t> copy_operating_parameters() {
  Bytes data(44);
  store_be(&data[8], static_cast<std::uint16_t>(kCopyTargetsMax));
  store_be(&data[10], static_cast<std::uint16_t>(kCopySegmentsMax));
  store_be(&data[12], kCopyListBytesMax);
  store_be(&data[16], kCopySegmentBytesMax);
  store_be(&data[34], std::uint16_t{255});  // copies at a time: as many as commands
  data[36] = 255;
  data[37] = 9;  // segments count in 512 bytes at least
  data[43] = 2;
  data.push_back(kCopySegmentCode);
  data.push_back(kCopyTargetCode);
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

}  // namespace mariner::scsi
