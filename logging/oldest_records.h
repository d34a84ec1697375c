// Reads the oldest records of the log, over all its disks: what must be given up before the track
// can be freed whose records end first. Giving up goes in the order of the log, so that nothing
// older is ever left behind; a track of another disk may be given up in part by that.
//
// Blocking; any thread. A value of what the owner's thread knew; the disks are held open.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "logging/disk.h"
#include "logging/log_location.h"
#include "logging/record.h"
#include "logging/taken_tracks.h"
#include "logging/track.h"

namespace mariner::logging {

// The live tracks of one disk.
struct LiveTracks {
  std::shared_ptr<Disk> disk;
  Superblock superblock;
  std::uint64_t oldest = 0;               // allocation
  std::uint64_t current = 0;              // allocation of the track that is being filled
  std::uint64_t current_first_batch = 0;  // in that track, also while there is none yet
  bool finished = false;          // there is none: the last one is complete, and nothing follows it
  std::vector<Allocated> tracks;  // from the oldest to the current one, without holes
};

struct OldestRecords {
  std::uint8_t disk = 0;          // whose oldest track can be freed when they are given up
  std::uint64_t end_ordinal = 0;  // they are all that lie below it ...
  // ... and at or above what was given up before; in the order of the log.
  std::vector<std::pair<Record, LogLocation>> records;
};

// Nothing: no disk has a complete track. `from`: the lowest ordinal that has not been given up.
Result<std::optional<OldestRecords>> read_oldest_records(const std::vector<LiveTracks>& disks,
                                                         std::uint64_t from);

}  // namespace mariner::logging
