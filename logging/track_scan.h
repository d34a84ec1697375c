// Reads one track's batches. The building brick of recovery.
//
// On a disk that does not rotate they stand one behind the other from the track's header on; on one
// that rotates they stand anywhere, and the whole track is looked through. FORMAT.md section 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/log_location.h"
#include "logging/track.h"

namespace mariner::logging {

// Batches [first_batch, last_batch] of a disk could not be read. They were noticed in `track`.
struct LogDamage {
  std::uint8_t disk = 0;
  std::uint64_t track = 0;
  std::uint64_t first_batch = 0;
  std::uint64_t last_batch = 0;
  std::string what;
};

inline constexpr std::uint64_t kScanReadBytesMax = 1u << 20;

struct TrackScanRequest {
  TrackHeader track;
  bool is_last = false;         // the youngest track: its last batch may be torn
  std::uint64_t end_batch = 0;  // else: the first batch of the next track
  // The longest read, but for a batch's header that is longer; from 64 KiB to 1 MiB.
  std::uint64_t read_bytes_max = kScanReadBytesMax;
};

struct ScannedRecord {
  Record record;
  LogLocation location;
};

struct TrackScan {
  std::vector<ScannedRecord> records;  // in the order of their batches
  std::vector<LogDamage> damage;
  std::uint64_t batches = 0;
  std::uint64_t records_cut = 0;
  std::uint64_t next_batch = 0;         // number of the batch after the last
  std::uint64_t next_sector = 0;        // where it goes; 0 when the track takes no more
  std::uint64_t last_batch_sector = 0;  // 0: the track has no batch
  std::uint64_t cut_sector = 0;         // where a batch that was cut begins; 0: none was
  // Of a rotating disk: where batches begin that a failed write has left behind.
  std::vector<std::uint64_t> left_behind;
  std::uint64_t ordinal_frontier = 0;  // of the last batch: what is still to come is at or above it
};

// Any thread; reads `disk` with blocking calls. Fails only when the disk cannot be read.
Result<TrackScan> scan_track(Disk& disk, const Superblock& superblock,
                             const TrackScanRequest& request);

// The first whole batch of `track` (its number and allocation count; allocation 0: of any) at or
// behind `sector` whose number is above `after`. Same threads and errors.
Result<std::optional<BatchHeader>> find_batch(Disk& disk, const Superblock& superblock,
                                              const TrackHeader& track, std::uint64_t sector,
                                              std::uint64_t after);

}  // namespace mariner::logging
