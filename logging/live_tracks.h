// The tracks of a log disk that hold records, as the owner's thread knows them at one time: for who
// reads them elsewhere while the log goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "logging/disk.h"
#include "logging/recovery.h"
#include "logging/taken_tracks.h"
#include "logging/withdrawn.h"

namespace mariner::logging {

class LogArray;

// Of one disk. A value; holds the disk open.
struct LiveTracks {
  std::shared_ptr<Disk> disk;
  Superblock superblock;
  std::uint64_t oldest = 0;               // allocation
  std::uint64_t current = 0;              // allocation of the track that is being filled
  std::uint64_t current_first_batch = 0;  // in that track, also while there is none yet
  bool finished = false;          // there is none: the last one is complete, and nothing follows it
  std::vector<Allocated> tracks;  // from the oldest to the current one, without holes
  Withdrawn withdrawn{};
  std::uint64_t read_bytes_max = kScanReadBytesMax;  // of one read
};

// Where hosts send one write after the other: such a write waits for as long as the device is busy
// with a read (1 MiB took a device that writes 8 KiB in 30 us another 300).
inline constexpr std::uint64_t kShortReadBytesMax = 256u << 10;

// Owner's thread.
std::vector<LiveTracks> live_tracks(const LogArray& log);

// The records of live.tracks[number], without those that were withdrawn. One that has been freed
// and taken anew since has none. Of the one that is being filled, what is in flight may be there or
// not. Blocking; any thread.
Result<CompleteTrack> read_live_track(const LiveTracks& live, std::size_t number);

}  // namespace mariner::logging
