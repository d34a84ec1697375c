// Keeps the slots of a log disk (slotted_disk.h): gives the tracks that are to be taken next slots,
// ahead of the writer, and takes those of freed and of packed tracks back. FORMAT.md section 7.
//
// A track is written to only when the map that names its slot is durable. So some are given slots
// in advance; a writer that is faster than that waits at the track gate for a moment.
//
// A map that could not be written may stand on the disk all the same, and a crash would find it: so
// it is written again until it does stand there, and nothing that it names is used for anything
// else. When that fails time and again, the gate opens, and the writer meets the error itself.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "logging/log_disk.h"
#include "logging/log_writer.h"
#include "logging/slotted_disk.h"
#include "logging/track_list.h"
#include "proto/executor.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::logging {

class SlotKeeper final : public TrackRoom {
 public:
  using Done = UniqueFunction<void(Result<void>)>;

  struct Parts {  // all outlive it
    SlottedDisk& disk;
    const TrackList& tracks;
    LogWriter& writer;
    Executor& executor;
  };
  // `current`: the allocation that is being filled; those up to it are live. What no live track
  // needs is free from now on.
  SlotKeeper(Parts parts, std::uint64_t current);
  ~SlotKeeper() override;  // idle() must hold
  SlotKeeper(const SlotKeeper&) = delete;
  SlotKeeper& operator=(const SlotKeeper&) = delete;

  // From now on slots are given when they are asked for. `disk` outlives it.
  void attach(const LogDisk& disk) { log_disk_ = &disk; }
  // Begins to give slots ahead.
  void start(const LogDisk& disk);
  [[nodiscard]] bool idle() const { return !writing_; }
  // What cannot be written is not tried again; `done` of packs that wait for it get kAborted.
  void stop();

  // Tracks behind `current` that can be taken: those with slots, and the slots that are left.
  [[nodiscard]] std::uint64_t free_tracks(std::uint64_t current) const override;
  // Half of the largest pack, because so much may be logged again before that is gone (Reclaimer),
  // and what packing is to have.
  [[nodiscard]] std::uint64_t kept_tracks() const override;

  // Whether the writer may take `track` now; if not, its retry() is called when it may.
  bool may_write(std::uint64_t track);
  // The tracks have been freed, durably.
  void released(std::span<const std::uint64_t> tracks);
  // So many are to be there for the next pack, also when ordinary records wait for room: else there
  // would be no more packing when it is needed most.
  void keep_for_packing(std::uint64_t tracks);
  [[nodiscard]] std::uint64_t kept_for_packing() const { return for_packing_; }
  // The pack is on the disk, durably. Its tracks are in it when `done` runs, and their slots are
  // free; those that are freed before are left out. kNotFound when all were; kLimit when the map
  // has no room; kAborted when it was stopped.
  void add_pack(PackPlace pack, Done done);

 private:
  struct NewPack {
    PackPlace place;
    Done done;
  };
  static constexpr std::uint64_t kAheadMax = 64;
  static constexpr int kFailuresMax = 2;  // in a row, before the gate opens

  void free_what_is_not_needed(std::uint64_t current);
  [[nodiscard]] std::uint64_t ahead() const {
    return backed_end_ - std::min(backed_end_, current() + 1);
  }
  [[nodiscard]] std::uint64_t current() const {
    return log_disk_ == nullptr ? started_at_ : log_disk_->taken_allocation();
  }
  [[nodiscard]] std::uint64_t wanted_ahead() const;
  void change();
  bool add_packs(SlotMap& next);
  bool give_slots(SlotMap& next);
  void write_copy();
  void read_back(std::uint64_t at);
  void copy_failed();
  void give_up();
  void written();
  void retry_writer();

  const Parts parts_;
  const std::uint64_t started_at_;
  const LogDisk* log_disk_ = nullptr;
  std::uint64_t backed_end_ = 0;  // allocations behind the current one and below it have slots
  std::uint64_t for_packing_ = 0;
  bool writer_waits_ = false;
  bool asking_again_ = false;  // in a moment
  bool stopping_ = false;
  std::vector<NewPack> new_packs_;

  // The change that is being written, or waits until that is tried again.
  bool writing_ = false;
  int failures_ = 0;  // in a row
  std::optional<SlotMap> next_;
  std::uint64_t next_generation_;
  std::uint32_t first_copy_;  // that is overwritten
  std::uint32_t copies_written_ = 0;
  std::uint64_t next_backed_end_ = 0;
  std::vector<Done> next_done_;
  std::vector<std::uint64_t> released_meanwhile_;
  Payload bytes_;
  Payload found_;  // what was read back
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
