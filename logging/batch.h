// The batch: the records that one physical write carries. FORMAT.md section 3.
//
// On disk: a header area of whole blocks (the batch header, then the packed records one after
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

inline constexpr std::uint32_t kBatchHeaderBytes = 64;
inline constexpr std::uint32_t kBatchRecordsMax = 512;
inline constexpr std::uint32_t kBatchHeaderBlocksMax = 64;

struct BatchHeader {
  std::uint16_t record_count = 0;
  std::uint16_t header_blocks = 0;
  std::uint32_t total_blocks = 0;    // header area and payloads
  std::uint64_t batch_number = 0;    // counts up by one over the whole log
  std::uint64_t allocation = 0;      // of the track: tells stale batches of an earlier use
  std::uint64_t block = 0;           // its own address on the log disk
  std::uint64_t previous_block = 0;  // the batch before; 0 for the first of the log

  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

// Blocks of header area that records of these packed sizes need.
[[nodiscard]] constexpr std::uint32_t header_blocks_for(std::uint64_t packed_bytes) {
  return static_cast<std::uint32_t>((kBatchHeaderBytes + packed_bytes + kBlockBytes - 1) /
                                    kBlockBytes);
}

// Writes the batch header into `area` (header_blocks whole blocks that hold the packed records
// already, the rest zeroed) and seals it with its CRC.
void seal_batch(const BatchHeader& header, const LogId& log, std::span<std::byte> area);

// Reads the fixed part of a batch header from its first block, checking magic, version and bounds
// but not the CRC, which covers the whole area. Nothing if it is none.
std::optional<BatchHeader> peek_batch(std::span<const std::byte> first_block, const LogId& log);

struct ParsedBatch {
  BatchHeader header;
  std::vector<UnpackedRecord> records;  // their CRC spans point into the area
};
// Checks CRC, identity and every record of a whole header area that lies at `block`. Nothing if
// anything is wrong: such an area is torn, stale, misdirected or damaged.
std::optional<ParsedBatch> parse_batch(std::span<const std::byte> area, const LogId& log,
                                       std::uint64_t block);

}  // namespace mariner::logging
