// One disk of the log's array, as the writer fills it: which track, where in it, and the bytes of
// the next batch.
//
// No policy and no I/O of its own. Invariants: one batch is built at a time, and the next only when
// that one is durable or taken back; batch numbers count up without gaps; tracks are taken in the
// order of their allocation numbers. Owner's thread only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "logging/disk.h"
#include "logging/disk_scan.h"
#include "logging/log_batch.h"
#include "logging/placement.h"
#include "logging/track.h"
#include "logging/track_list.h"

namespace mariner::logging {

// How many tracks behind the allocation `current` there is room for, where tracks stand in slots.
class TrackRoom {
 public:
  virtual ~TrackRoom() = default;
  [[nodiscard]] virtual std::uint64_t free_tracks(std::uint64_t current) const = 0;
  // Of them, those that ordinary records leave to what gives tracks back: that comes before room
  // does, where several tracks are freed as a whole.
  [[nodiscard]] virtual std::uint64_t kept_tracks() const = 0;
};

class LogDisk {
 public:
  using Time = Placement::Time;
  struct Parts {  // all outlive it
    Disk& disk;
    const Superblock& superblock;
    const TrackList& tracks;
    const TrackRoom* room = nullptr;  // none: as many as are planned
  };

  // `tail`: from recovery. `placement`: nothing: one that appends. A disk that rotates needs one
  // that knows it.
  LogDisk(Parts parts, DiskTail tail, std::unique_ptr<Placement> placement = nullptr);

  [[nodiscard]] Disk& disk() const { return parts_.disk; }
  [[nodiscard]] const Superblock& superblock() const { return parts_.superblock; }
  [[nodiscard]] const TrackList& tracks() const { return parts_.tracks; }
  [[nodiscard]] std::uint8_t number() const { return parts_.superblock.disk; }
  [[nodiscard]] Placement& placement() { return *placement_; }
  [[nodiscard]] const Placement& placement() const { return *placement_; }

  // Tracks that can be taken.
  [[nodiscard]] std::uint64_t free_tracks() const {
    const std::uint64_t planned = parts_.tracks.end() - 1 - tail_.allocation;
    if (parts_.room == nullptr) return planned;
    return std::min(planned, parts_.room->free_tracks(tail_.allocation));
  }
  // Of them, those that ordinary records leave, beside the writer's own reserve.
  [[nodiscard]] std::uint64_t kept_tracks() const {
    return parts_.room == nullptr ? 0 : parts_.room->kept_tracks();
  }
  // The last one that was taken; 0: none yet.
  [[nodiscard]] std::uint64_t taken_allocation() const { return tail_.allocation; }
  // The one that would be taken next. Requires free_tracks() > 0.
  [[nodiscard]] std::uint64_t next_track() const { return track_of(tail_.allocation + 1); }
  void take_track(Time now);
  // Leaves the rest of the present track unused, if anything stands there. Nothing may be in
  // flight.
  void leave_track(Time now);

  // The longest record that fits into an empty track.
  [[nodiscard]] std::uint64_t record_bytes_max() const;
  // How many of the records at the front of `queue` the next batch takes, at most `bytes_max` of
  // them (but one, if the track has room for it).
  [[nodiscard]] std::size_t batch_length(const std::deque<PendingRecord>& queue,
                                         std::uint32_t bytes_max, Time now) const;
  // Makes a batch of batch.records, in its place, and fills in their locations.
  void build(LogBatch& batch, std::uint64_t ordinal_frontier, Time now);
  // Undoes build() of a batch whose write failed; the track is left.
  void take_back(const LogBatch& batch, Time now);

  // Of the disk.
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::uint64_t limit_bytes() const {
    return parts_.superblock.place_count() * parts_.superblock.track_bytes();
  }
  // What it would use if nothing was packed.
  [[nodiscard]] std::uint64_t history_bytes() const;
  // Tracks from this one on have never been taken.
  [[nodiscard]] std::uint64_t next_fresh_track() const {
    return std::min(tail_.allocation, parts_.superblock.place_count());
  }
  // Of the track that is being filled; allocations below it are complete and may be released, once
  // nothing that they hold is needed. 0: none yet.
  [[nodiscard]] std::uint64_t current_allocation() const {
    return tail_.allocation + (finished_ ? 1 : 0);
  }
  // Number of the first batch in that track, also while there is none yet.
  [[nodiscard]] std::uint64_t track_first_batch() const { return tail_.track_first_batch; }
  // Nothing is written any more: the last track is complete.
  void finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  [[nodiscard]] std::uint64_t track_of(std::uint64_t allocation) const;
  // Where batches may stand in the track of `allocation`.
  [[nodiscard]] SectorRange room_of(std::uint64_t allocation) const;
  // Lays out what is written: the track's header if there is one, the header area, the payloads.
  // Returns the first two, in the gathered memory.
  struct Headers {
    std::span<std::byte> track;  // empty: none
    std::span<std::byte> area;
  };
  [[nodiscard]] Headers lay_out(LogBatch& batch, bool with_track_header) const;
  void pack(LogBatch& batch, std::span<std::byte> area);

  const Parts parts_;
  const BatchFormat format_;
  DiskTail tail_;
  std::unique_ptr<Placement> placement_;
  bool finished_ = false;
  bool has_track_ = false;          // one is being filled
  bool track_is_new_ = false;       // nothing has been built for it yet
  std::uint64_t used_sectors_ = 0;  // of the track that is being filled
};

}  // namespace mariner::logging
