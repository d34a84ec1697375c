// Reads one log disk from its oldest track to its youngest, track by track, and finds where it
// ends. The part of recovery that knows nothing of other disks.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "logging/disk.h"
#include "logging/taken_tracks.h"
#include "logging/track_list.h"
#include "logging/track_scan.h"

namespace mariner::logging {

// Where one log disk ends: found by recovery, continued by the writer.
struct DiskTail {
  // The last record of a volume on this disk.
  struct LastRecord {
    std::uint64_t sector = 0;
    std::uint16_t slot = 0;
  };
  std::uint64_t allocation = 0;   // of the track being filled; 0: none yet
  std::uint64_t next_sector = 0;  // where the next batch goes; 0: in a new track
  std::uint64_t next_batch = 1;
  std::uint64_t previous_batch_sector = 0;
  std::uint64_t track_first_batch = 0;  // of the track being filled
  std::unordered_map<VolumeId, LastRecord> last_records;
};

class DiskScan {
 public:
  // Finds the taken tracks. `threads` readers work ahead of next(), two tracks each; 0: none.
  // `disk` and `superblock` outlive it.
  static Result<DiskScan> open(Disk& disk, const Superblock& superblock, unsigned threads);
  ~DiskScan();
  DiskScan(DiskScan&&) = default;
  DiskScan& operator=(DiskScan&&) = delete;

  // The next track; nothing behind the last. After an error no more.
  Result<std::optional<TrackScan>> next();

  // After the last: erases the remains of what the scan has cut, durably, so that what was not
  // found never will be. FORMAT.md section 5.
  Result<void> erase_remains();

  [[nodiscard]] const TrackList& tracks() const { return list_; }
  [[nodiscard]] const DiskTail& tail() const { return tail_; }
  // Every record that next() has still to give has an ordinal at or above it. Highest: no more.
  [[nodiscard]] std::uint64_t ordinal_frontier() const { return frontier_; }

 private:
  DiskScan(Disk& disk, const Superblock& superblock, TrackList list, unsigned threads)
      : disk_(&disk), superblock_(&superblock), list_(std::move(list)), threads_(threads) {}
  void read_ahead();
  Result<void> erase(SectorRange range);

  Disk* disk_;
  const Superblock* superblock_;
  TrackList list_;
  unsigned threads_;
  std::vector<TrackHeader> taken_;
  std::size_t started_ = 0;
  std::size_t given_ = 0;
  std::deque<std::future<Result<TrackScan>>> scans_;
  DiskTail tail_;
  // First sectors of batches that were not given and stand where nothing is written next.
  std::vector<std::uint64_t> remains_;
  std::uint64_t frontier_ = 0;
};

}  // namespace mariner::logging
