// Recovery: reads the log from its first record to its youngest, and finds where it ends.
//
// What a crash can leave: the last batch of the last track may be torn, because it alone was in
// flight. It is cut whole: none of its records was acknowledged. Anything unreadable before that is
// damage, reported as ranges of batch numbers, never silently skipped. FORMAT.md section 5.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/log_location.h"
#include "logging/log_writer.h"
#include "logging/track.h"
#include "logging/track_list.h"

namespace mariner::logging {

// Writes the superblock and the allocation list of a new log over the whole of `disk`. Durable on
// return.
Result<Superblock> format_log(Disk& disk, const LogId& log, std::uint8_t number,
                              std::uint64_t track_bytes, std::uint64_t created_ns);

// Writes `superblock` with a higher generation over the older copy. Durable on return; unchanged
// on failure.
Result<void> update_superblock(Disk& disk, Superblock& superblock);

// The newer valid copy; one that cannot be read counts as damaged. kIo when neither can. kCorrupt
// when there is none or the disk is shorter than it says; kNotFound when the disk holds no log at
// all (both copies are zero).
Result<Superblock> read_superblock(Disk& disk);

// Batches [first, last] of a track could not be read.
struct LogDamage {
  std::uint64_t track = 0;
  std::uint64_t first_batch = 0;
  std::uint64_t last_batch = 0;
  std::string what;
};

// The end of the taken tracks, found by a binary search over the allocation list: no allocation
// from `end` to `end` + 2 has a track header of its own. At most 3 track reads a step.
struct TakenEnd {
  std::uint64_t end = 0;
  std::uint64_t track_reads = 0;
};
Result<TakenEnd> find_taken_end(Disk& disk, const Superblock& superblock, const TrackList& tracks);

struct Recovered {
  LogTail tail;
  TrackList tracks;
  std::uint64_t records = 0;
  std::uint64_t batches = 0;
  std::uint64_t tail_records_cut = 0;  // of the torn last batch
  std::vector<LogDamage> damage;
};

// Receives every record in the order of the log.
using RecordVisitor = std::function<void(const Record&, const LogLocation&)>;

// Writes pages of the allocation list, in order. Durable on return.
Result<void> write_list(Disk& disk, const LogId& log, const std::vector<TrackList::Write>& writes);

// Reads the header areas of the whole log with `threads` readers (disk calls are blocking) and
// visits its records in order on the calling thread. On return the remains of a torn batch are
// erased, durably, so that what was not visited never will be. Memory is bounded by the tracks that
// are read ahead (two for each reader).
Result<Recovered> recover_log(Disk& disk, const Superblock& superblock, unsigned threads,
                              const RecordVisitor& visit);

// A place in the allocation list.
struct Allocated {
  std::uint64_t allocation = 0;
  std::uint64_t track = 0;
};
// The allocations from `allocation` on that have a track, at most `count`.
std::vector<Allocated> allocated_from(const TrackList& tracks, std::uint64_t allocation,
                                      std::size_t count);

struct CompleteTrack {
  std::vector<std::pair<Record, LogLocation>> records;
  std::vector<LogDamage> damage;
};
// Reads the records of a track that is no longer written to: the first of `tracks`, which the
// others follow (to tell where it ends). Nothing in it: an unused one. Any thread.
Result<CompleteTrack> read_complete_track(Disk& disk, const Superblock& superblock,
                                          const std::vector<Allocated>& tracks);

}  // namespace mariner::logging
