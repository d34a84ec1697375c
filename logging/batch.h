// The batch: the records that one physical write carries. FORMAT.md section 3.
//
// On disk: a header area of whole sectors (the batch header, then the packed records one after
// another), then the records' payloads, each whole blocks, in the records' order. The headers stand
// together so that recovery reads them and not the payloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "logging/record.h"
#include "proto/units.h"

namespace mariner::logging {

using LogId = std::array<std::byte, 16>;

inline constexpr std::uint32_t kBatchHeaderBytes = 80;
inline constexpr std::uint32_t kBatchRecordsMax = 512;

// What the batches of one log disk have in common.
struct BatchFormat {
  BatchFormat() = default;
  BatchFormat(const LogId& log_id, std::uint32_t bytes = kBlockBytes)  // NOLINT: a LogId is one
      : log(log_id), sector_bytes(bytes) {}

  LogId log{};
  std::uint32_t sector_bytes = kBlockBytes;  // 512 or 4096: the unit in which the disk is written

  [[nodiscard]] std::uint32_t sectors_per_block() const { return kBlockBytes / sector_bytes; }
  // Of one batch; its length fits into a byte (LogLocation).
  [[nodiscard]] std::uint32_t header_sectors_max() const {
    return sector_bytes == kBlockBytes ? 64 : 255;
  }
};

// All places and lengths are in sectors of the log disk.
struct BatchHeader {
  std::uint16_t record_count = 0;
  std::uint16_t header_sectors = 0;
  std::uint32_t total_sectors = 0;      // header area and payloads
  std::uint64_t batch_number = 0;       // counts up by one over the whole log disk
  std::uint64_t allocation = 0;         // of the track: tells stale batches of an earlier use
  std::uint64_t sector = 0;             // its own address on the log disk
  std::uint64_t previous_sector = 0;    // the batch before; 0 for the first of the disk
  std::uint64_t ordinal_frontier = 0;   // every record of the log below it was durable or given up
  std::uint64_t track_first_batch = 0;  // number of the first batch in this track

  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

// Sectors of header area that records of these packed sizes need.
[[nodiscard]] constexpr std::uint32_t header_sectors_for(std::uint64_t packed_bytes,
                                                         std::uint32_t sector_bytes = kBlockBytes) {
  return static_cast<std::uint32_t>((kBatchHeaderBytes + packed_bytes + sector_bytes - 1) /
                                    sector_bytes);
}

// Writes the batch header into `area` (header_sectors whole sectors that hold the packed records
// already, the rest zeroed) and seals it with its CRC.
void seal_batch(const BatchHeader& header, const BatchFormat& format, std::span<std::byte> area);

// Reads the fixed part of a batch header from its first sector, checking magic, version and bounds
// but not the CRC, which covers the whole area. Nothing if it is none.
std::optional<BatchHeader> peek_batch(std::span<const std::byte> first_sector,
                                      const BatchFormat& format);

struct ParsedBatch {
  BatchHeader header;
  std::vector<UnpackedRecord> records;  // their CRC spans point into the area
};
// Checks CRC, identity and every record of a whole header area that lies at `sector`. Nothing if
// anything is wrong: such an area is torn, stale, misdirected or damaged.
std::optional<ParsedBatch> parse_batch(std::span<const std::byte> area, const BatchFormat& format,
                                       std::uint64_t sector);

}  // namespace mariner::logging
