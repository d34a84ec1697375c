// Reads one track's batches from its header to its end. The building brick of recovery.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "logging/recovery.h"

namespace mariner::logging {

struct TrackScanRequest {
  TrackHeader track;
  bool is_last = false;         // the youngest track: its last batch may be torn
  std::uint64_t end_batch = 0;  // else: the first batch of the next track
};

struct ScannedRecord {
  Record record;
  LogLocation location;
};

struct TrackScan {
  std::vector<ScannedRecord> records;
  std::vector<LogDamage> damage;
  std::uint64_t batches = 0;
  std::uint64_t records_cut = 0;
  std::uint64_t next_batch = 0;        // number of the batch after the last
  std::uint64_t next_block = 0;        // where it goes; 0 when the track has no room
  std::uint64_t last_batch_block = 0;  // 0: the track has no batch
};

// Any thread; reads `disk` with blocking calls. Fails only when the disk cannot be read.
Result<TrackScan> scan_track(Disk& disk, const Superblock& superblock,
                             const TrackScanRequest& request);

// The first whole batch of `track` (its number and allocation count) at or behind `block` whose
// number is above `after`. Same threads and errors.
Result<std::optional<BatchHeader>> find_batch(Disk& disk, const Superblock& superblock,
                                              const TrackHeader& track, std::uint64_t block,
                                              std::uint64_t after);

}  // namespace mariner::logging
