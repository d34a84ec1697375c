// Reads the oldest records of the log, over all its disks: what must be given up before the track
// can be freed whose records end first. Giving up goes in the order of the log, so that nothing
// older is ever left behind; a track of another disk may be given up in part by that.
//
// Blocking; any thread. A value of what the owner's thread knew; the disks are held open.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "logging/live_tracks.h"
#include "logging/log_location.h"
#include "logging/record.h"

namespace mariner::logging {

struct OldestRecords {
  std::uint8_t disk = 0;          // whose oldest track can be freed when they are given up
  std::uint64_t end_ordinal = 0;  // they are all that lie below it ...
  // ... and at or above what was given up before; in the order of the log. Withdrawals are not
  // among them.
  std::vector<std::pair<Record, LogLocation>> records;
};

// Track after track, in the order in which they can be freed.
class OldestRecordsReader {
 public:
  // `disks` outlives it. `from`: the lowest ordinal that has not been given up.
  OldestRecordsReader(const std::vector<LiveTracks>& disks, std::uint64_t from);
  ~OldestRecordsReader();

  // The next track, with what lies between the one before it (or `from`) and its end. Nothing: no
  // disk has another complete one. After an error it is of no use.
  Result<std::optional<OldestRecords>> next();

 private:
  class OfDisk;
  std::vector<OfDisk> disks_;
  std::uint64_t from_;
};

// The first of them.
Result<std::optional<OldestRecords>> read_oldest_records(const std::vector<LiveTracks>& disks,
                                                         std::uint64_t from);

}  // namespace mariner::logging
