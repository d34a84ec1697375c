// Where a record stands in the log: what an index remembers of a version.
#pragma once

#include <compare>
#include <cstdint>

namespace mariner::logging {

// One record of one batch of one track. In sectors of its log disk (Superblock::sector_bytes), from
// the disk's start. Valid until the track is freed.
struct LogLocation {
  std::uint64_t batch_sector = 0;    // where the batch's header area begins; 0 is no location
  std::uint32_t payload_offset = 0;  // from there to the record's payload
  std::uint16_t slot = 0;            // the record's number in the batch
  std::uint8_t header_sectors = 0;   // length of the header area
  std::uint8_t disk = 0;             // number of the log disk in the array

  friend constexpr auto operator<=>(const LogLocation&, const LogLocation&) = default;
  [[nodiscard]] constexpr bool valid() const { return batch_sector != 0; }
  [[nodiscard]] constexpr std::uint64_t payload_sector() const {
    return batch_sector + payload_offset;
  }
};
static_assert(sizeof(LogLocation) == 16);

}  // namespace mariner::logging
