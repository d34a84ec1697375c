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
  kHeaderSectors = 12,
  kReserved = 14,
  kTotalSectors = 16,
  kLogIdTail = 20,
  kBatchNumber = 24,
  kAllocation = 32,
  kSector = 40,
  kPreviousSector = 48,
  kOrdinalFrontier = 56,
  kTrackFirstBatch = 64,
  kReserved2 = 72,
  kEnd = 80,
};
static_assert(kEnd == kBatchHeaderBytes);

constexpr std::uint32_t kBatchMagic = 0x4854424d;  // "MBTH"
constexpr std::uint16_t kBatchVersion = 2;

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

void seal_batch(const BatchHeader& h, const BatchFormat& format, std::span<std::byte> area) {
  const LogId& log = format.log;
  CHECK(area.size() == std::size_t{h.header_sectors} * format.sector_bytes);
  CHECK(h.record_count > 0 && h.record_count <= kBatchRecordsMax);
  CHECK(h.header_sectors > 0 && h.header_sectors <= format.header_sectors_max());
  CHECK(h.total_sectors >= h.header_sectors);
  std::byte* p = area.data();
  std::memset(p, 0, kBatchHeaderBytes);
  store_le(p + kMagic, kBatchMagic);
  store_le(p + kVersion, kBatchVersion);
  store_le(p + kRecordCount, h.record_count);
  store_le(p + kHeaderSectors, h.header_sectors);
  store_le(p + kTotalSectors, h.total_sectors);
  store_le(p + kLogIdTail, log_id_tail(log));
  store_le(p + kBatchNumber, h.batch_number);
  store_le(p + kAllocation, h.allocation);
  store_le(p + kSector, h.sector);
  store_le(p + kPreviousSector, h.previous_sector);
  store_le(p + kOrdinalFrontier, h.ordinal_frontier);
  store_le(p + kTrackFirstBatch, h.track_first_batch);
  store_le(p + kCrc, area_crc(area, log));
}

std::optional<BatchHeader> peek_batch(std::span<const std::byte> first_sector,
                                      const BatchFormat& format) {
  if (first_sector.size() < kBatchHeaderBytes) return std::nullopt;
  const std::byte* p = first_sector.data();
  if (load_le<std::uint32_t>(p + kMagic) != kBatchMagic ||
      load_le<std::uint16_t>(p + kVersion) != kBatchVersion ||
      load_le<std::uint32_t>(p + kLogIdTail) != log_id_tail(format.log)) {
    return std::nullopt;
  }
  BatchHeader h;
  h.record_count = load_le<std::uint16_t>(p + kRecordCount);
  h.header_sectors = load_le<std::uint16_t>(p + kHeaderSectors);
  h.total_sectors = load_le<std::uint32_t>(p + kTotalSectors);
  h.batch_number = load_le<std::uint64_t>(p + kBatchNumber);
  h.allocation = load_le<std::uint64_t>(p + kAllocation);
  h.sector = load_le<std::uint64_t>(p + kSector);
  h.previous_sector = load_le<std::uint64_t>(p + kPreviousSector);
  h.ordinal_frontier = load_le<std::uint64_t>(p + kOrdinalFrontier);
  h.track_first_batch = load_le<std::uint64_t>(p + kTrackFirstBatch);
  if (h.record_count == 0 || h.record_count > kBatchRecordsMax || h.header_sectors == 0 ||
      h.header_sectors > format.header_sectors_max() || h.total_sectors < h.header_sectors ||
      h.track_first_batch > h.batch_number) {
    return std::nullopt;
  }
  return h;
}

std::optional<ParsedBatch> parse_batch(std::span<const std::byte> area, const BatchFormat& format,
                                       std::uint64_t sector) {
  const std::optional<BatchHeader> header = peek_batch(area, format);
  if (!header || header->sector != sector ||
      area.size() != std::size_t{header->header_sectors} * format.sector_bytes ||
      load_le<std::uint32_t>(area.data() + kCrc) != area_crc(area, format.log)) {
    return std::nullopt;
  }
  ParsedBatch batch;
  batch.header = *header;
  batch.records.reserve(header->record_count);
  std::size_t at = kBatchHeaderBytes;
  std::uint64_t payload = header->header_sectors;
  for (std::uint32_t i = 0; i < header->record_count; ++i) {
    std::optional<UnpackedRecord> record = unpack_record(area.subspan(at));
    if (!record || record->record.payload_offset != payload) return std::nullopt;
    at += record->packed_bytes;
    payload += std::uint64_t{record->record.payload_blocks} * format.sectors_per_block();
    batch.records.push_back(*record);
  }
  if (payload != header->total_sectors) return std::nullopt;
  return batch;
}

}  // namespace mariner::logging
