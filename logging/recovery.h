// Recovery: reads the log from its first record to its youngest, over all its disks, and finds
// where it ends.
//
// What a crash can leave: the last batch of each disk may be torn, because it alone was in flight.
// It is cut whole: none of its records was acknowledged. Anything unreadable before that is
// damage, reported as ranges of batch numbers, never silently skipped. FORMAT.md section 5.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "logging/disk.h"
#include "logging/disk_scan.h"
#include "logging/log_location.h"
#include "logging/record.h"
#include "logging/superblock_store.h"
#include "logging/track_list.h"
#include "logging/track_scan.h"
#include "logging/withdrawn.h"

namespace mariner::logging {

// One disk of the array. Both outlive every use of it.
struct LogDiskRef {
  Disk& disk;
  const Superblock& superblock;
};

struct RecoveredDisk {
  DiskTail tail;
  TrackList tracks;
};

struct Recovered {
  std::uint64_t next_ordinal = 1;    // of the record that is written next
  std::vector<RecoveredDisk> disks;  // in the order of the refs
  std::uint64_t records = 0;
  std::uint64_t batches = 0;
  std::uint64_t tail_records_cut = 0;  // of torn last batches
  std::vector<LogDamage> damage;
  Withdrawn withdrawn;
};

// Receives every record in the order of the log; not those that were withdrawn, nor what withdraws
// them.
using RecordVisitor = std::function<void(const Record&, const LogLocation&)>;

// Reads the header areas of the whole log with `threads` readers (disk calls are blocking) and
// visits its records in the order of their ordinals on the calling thread; of a record that stands
// there twice, one. On return the remains of torn batches are erased, durably, so that what was not
// visited never will be. Memory is bounded by the tracks that are read ahead (two for each reader)
// and by how far the disks are apart.
Result<Recovered> recover_log(std::span<const LogDiskRef> disks, unsigned threads,
                              const RecordVisitor& visit);

struct CompleteTrack {
  std::vector<std::pair<Record, LogLocation>> records;
  std::vector<LogDamage> damage;
  std::uint64_t ordinal_frontier = 0;  // what its disk got later lies at or above it
  std::uint64_t end_batch = 0;         // number of the batch behind its last; 0: an unused track
};
// Reads the records of a track that is no longer written to: the first of `tracks`, which the
// others follow (to tell where it ends). `end_batch`: where it ends if none of those has been
// written to yet; 0: not known, and that is kCorrupt. `read_bytes_max` as TrackScanRequest's.
// Nothing in it: an unused one. Any thread.
Result<CompleteTrack> read_complete_track(Disk& disk, const Superblock& superblock,
                                          const std::vector<Allocated>& tracks,
                                          std::uint64_t end_batch = 0,
                                          std::uint64_t read_bytes_max = kScanReadBytesMax);
// The same of the track that is being filled, as far as it goes; what is in flight may be there or
// not.
Result<CompleteTrack> read_growing_track(Disk& disk, const Superblock& superblock,
                                         const Allocated& track,
                                         std::uint64_t read_bytes_max = kScanReadBytesMax);

}  // namespace mariner::logging
