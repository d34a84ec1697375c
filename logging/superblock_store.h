// Reads and writes what stands in the reserved area of a log disk: the superblock's two copies and
// the pages of the allocation list. FORMAT.md sections 1 and 2. Blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "logging/disk.h"
#include "logging/track.h"
#include "logging/track_list.h"

namespace mariner::logging {

struct LogShape {
  LogId log{};
  std::uint8_t disk = 0;  // number in the array
  std::uint64_t track_bytes = 0;
  std::uint64_t created_ns = 0;
  // Of a rotating disk: its sectors, where track 0 begins (behind the reserved area), how many
  // tracks there are and how long a revolution takes. Otherwise the tracks follow the reserved area
  // and fill the disk.
  std::uint32_t sector_bytes = kBlockBytes;
  std::uint64_t first_sector = 0;
  std::uint64_t tracks = 0;
  std::chrono::nanoseconds rotation{0};
  // Tracks stand in slots, so that they can be packed (slot_map.h). Not of a rotating disk, nor
  // with sectors of 512 bytes.
  bool slots = false;
};

// Writes the superblock and the allocation list of a new log disk over the whole of `disk`. Durable
// on return. kInvalidArgument when the shape does not fit the disk or the format.
Result<Superblock> format_log_disk(Disk& disk, const LogShape& shape);

// The same for a disk that does not rotate.
inline Result<Superblock> format_log(Disk& disk, const LogId& log, std::uint8_t number,
                                     std::uint64_t track_bytes, std::uint64_t created_ns,
                                     bool slots = false) {
  return format_log_disk(disk, {.log = log,
                                .disk = number,
                                .track_bytes = track_bytes,
                                .created_ns = created_ns,
                                .slots = slots});
}

// Writes `superblock` with a higher generation over the older copy. Durable on return; unchanged
// on failure.
Result<void> update_superblock(Disk& disk, Superblock& superblock);

// The newer valid copy; one that cannot be read counts as damaged. kIo when neither can. kCorrupt
// when there is none or the disk is shorter than it says; kNotFound when the disk holds no log at
// all (both copies are zero).
Result<Superblock> read_superblock(Disk& disk);

// Writes pages of the allocation list. Durable on return, all together.
Result<void> write_list(Disk& disk, const LogId& log, std::span<const TrackList::Write> writes);

// Writes the whole list, as TrackList::all_pages() gives it, over whatever stands there: however
// far it comes, what is found afterwards is the old list as it was, the new one, or a notice that
// neither counts. Durable on return.
Result<void> replace_list(Disk& disk, const LogId& log, std::span<const TrackList::Write> writes);

}  // namespace mariner::logging
