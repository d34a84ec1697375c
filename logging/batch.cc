#include "logging/batch.h"

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

// FORMAT.md section 3.
enum Offset : std::size_t {
  kMagic = 0,
  kCrc = 4,
  kVersion = 8,
  kRecordCount = 10,
  kHeaderBlocks = 12,
  kReserved = 14,
  kTotalBlocks = 16,
  kLogIdTail = 20,
  kBatchNumber = 24,
  kAllocation = 32,
  kBlock = 40,
  kPreviousBlock = 48,
  kReserved2 = 56,
  kEnd = 64,
};
static_assert(kEnd == kBatchHeaderBytes);

constexpr std::uint32_t kBatchMagic = 0x4854424d;  // "MBTH"
constexpr std::uint16_t kBatchVersion = 1;

std::uint32_t log_id_tail(const LogId& log) { return load_le<std::uint32_t>(log.data() + 12); }

// The CRC covers the log's identity, then the whole area with its own four bytes as zero.
std::uint32_t area_crc(std::span<const std::byte> area, const LogId& log) {
  static constexpr std::byte kZero[4]{};
  std::uint32_t crc = crc32c(log);
  crc = crc32c(area.first(kCrc), crc);
  crc = crc32c(kZero, crc);
  return crc32c(area.subspan(kCrc + 4), crc);
}

}  // namespace

void seal_batch(const BatchHeader& h, const LogId& log, std::span<std::byte> area) {
  CHECK(area.size() == std::size_t{h.header_blocks} * kBlockBytes);
  CHECK(h.record_count > 0 && h.record_count <= kBatchRecordsMax);
  CHECK(h.header_blocks > 0 && h.header_blocks <= kBatchHeaderBlocksMax);
  CHECK(h.total_blocks >= h.header_blocks);
  std::byte* p = area.data();
  std::memset(p, 0, kBatchHeaderBytes);
  store_le(p + kMagic, kBatchMagic);
  store_le(p + kVersion, kBatchVersion);
  store_le(p + kRecordCount, h.record_count);
  store_le(p + kHeaderBlocks, h.header_blocks);
  store_le(p + kTotalBlocks, h.total_blocks);
  store_le(p + kLogIdTail, log_id_tail(log));
  store_le(p + kBatchNumber, h.batch_number);
  store_le(p + kAllocation, h.allocation);
  store_le(p + kBlock, h.block);
  store_le(p + kPreviousBlock, h.previous_block);
  store_le(p + kCrc, area_crc(area, log));
}

std::optional<BatchHeader> peek_batch(std::span<const std::byte> first_block, const LogId& log) {
  if (first_block.size() < kBatchHeaderBytes) return std::nullopt;
  const std::byte* p = first_block.data();
  if (load_le<std::uint32_t>(p + kMagic) != kBatchMagic ||
      load_le<std::uint16_t>(p + kVersion) != kBatchVersion ||
      load_le<std::uint32_t>(p + kLogIdTail) != log_id_tail(log)) {
    return std::nullopt;
  }
  BatchHeader h;
  h.record_count = load_le<std::uint16_t>(p + kRecordCount);
  h.header_blocks = load_le<std::uint16_t>(p + kHeaderBlocks);
  h.total_blocks = load_le<std::uint32_t>(p + kTotalBlocks);
  h.batch_number = load_le<std::uint64_t>(p + kBatchNumber);
  h.allocation = load_le<std::uint64_t>(p + kAllocation);
  h.block = load_le<std::uint64_t>(p + kBlock);
  h.previous_block = load_le<std::uint64_t>(p + kPreviousBlock);
  if (h.record_count == 0 || h.record_count > kBatchRecordsMax || h.header_blocks == 0 ||
      h.header_blocks > kBatchHeaderBlocksMax || h.total_blocks < h.header_blocks) {
    return std::nullopt;
  }
  return h;
}

std::optional<ParsedBatch> parse_batch(std::span<const std::byte> area, const LogId& log,
                                       std::uint64_t block) {
  const std::optional<BatchHeader> header = peek_batch(area, log);
  if (!header || header->block != block ||
      area.size() != std::size_t{header->header_blocks} * kBlockBytes ||
      load_le<std::uint32_t>(area.data() + kCrc) != area_crc(area, log)) {
    return std::nullopt;
  }
  ParsedBatch batch;
  batch.header = *header;
  batch.records.reserve(header->record_count);
  std::size_t at = kBatchHeaderBytes;
  std::uint64_t payload = header->header_blocks;
  for (std::uint32_t i = 0; i < header->record_count; ++i) {
    std::optional<UnpackedRecord> record = unpack_record(area.subspan(at));
    if (!record || record->record.payload_offset != payload) return std::nullopt;
    at += record->packed_bytes;
    payload += record->record.payload_blocks;
    batch.records.push_back(*record);
  }
  if (payload != header->total_blocks) return std::nullopt;
  return batch;
}

}  // namespace mariner::logging
