// Packs the cold tracks of one log disk in the background (PACK.md), so that its history takes less
// room. Never on the way of a write: it takes complete tracks only, on a thread of its own, within
// its share of a core.
//
// Tracks are packed from the oldest on, several together, because what they have in common is kept
// once. A track is cold when its youngest record is old enough; when the log runs short of room,
// every complete track is.
//
// Owner's thread only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "logging/log_disk.h"
#include "logging/log_writer.h"
#include "logging/packing_job.h"
#include "logging/slot_keeper.h"
#include "logging/track_list.h"
#include "proto/executor.h"
#include "proto/unique_function.h"

namespace mariner::logging {

struct PackingOptions {
  bool enabled = false;
  std::chrono::nanoseconds cold_after = std::chrono::hours(1);
  double cpu_share = 0.25;  // of one core
  int level = 6;            // of zstd
  // Tracks of about so many bytes go into one pack: what they have in common is kept once. At least
  // one track, and at most a 32nd of the disk, because a pack is freed as a whole; up to an eighth
  // where packs turn out to take less than their tracks did, while there is room.
  std::uint64_t pack_bytes = std::uint64_t{2} << 30;
};

struct PackingReport {
  std::size_t tracks = 0;
  std::uint64_t used_bytes = 0;    // of the tracks
  std::uint64_t packed_bytes = 0;  // of the pack
  // Something that somebody should know: the tracks stay as they are.
  std::string trouble;
};

class TrackPacker {
 public:
  struct Parts {  // all outlive it
    std::shared_ptr<SlottedDisk> disk;
    SlotKeeper& slots;
    const LogDisk& log_disk;
    const TrackList& tracks;
    LogWriter& writer;
    Executor& executor;
  };
  using Reporter = UniqueFunction<void(const PackingReport&)>;
  using Done = UniqueFunction<void(Result<void>)>;

  TrackPacker(Parts parts, Reporter report);
  ~TrackPacker();  // idle() must hold
  TrackPacker(const TrackPacker&) = delete;
  TrackPacker& operator=(const TrackPacker&) = delete;

  // From now on; the first call begins.
  // As long as it is enabled, ordinary records leave room for one pack.
  void set_options(const PackingOptions& options);
  // Packs everything that is complete, however young; `done` runs when nothing is left, or it is
  // stopped (kAborted), or there is no room to work (kNoSpace).
  void pack_now(Done done);
  // Ends what is under way; nothing is lost.
  void stop();
  [[nodiscard]] bool idle() const { return !packing_; }

 private:
  static constexpr std::chrono::seconds kLookEvery{1};
  static constexpr std::uint64_t kSpareTracks = 2;  // to work in
  // Of zstd. Level 1 takes 1.1 to 1.4 times as long, for packs that are up to an eighth shorter.
  static constexpr int kQuickLevel = -1;
  static constexpr std::uint64_t kSavedMax = 4;  // that is made use of

  void look();
  void look_again(std::chrono::nanoseconds delay);
  [[nodiscard]] bool pressed() const;
  // The oldest tracks are being given up for want of room.
  [[nodiscard]] bool short_of_room() const;
  [[nodiscard]] std::uint64_t packs_saved() const;
  [[nodiscard]] std::uint64_t tracks_at_once(std::uint64_t saved) const;
  [[nodiscard]] PackingJob choose() const;
  [[nodiscard]] LiveTracks live() const;
  void begin(PackingJob job);
  void end_building();
  void ended(const PackingJob& job, PackingResult result);
  void failed(const PackingJob& job, const PackingFailure& failure);
  void tell_done(const Result<void>& result);
  [[nodiscard]] bool any_freed(const PackingJob& job) const;

  const Parts parts_;
  Reporter report_;
  PackingOptions options_;
  std::atomic<double> cpu_share_{0.25};
  std::atomic<bool> cancelled_{false};
  std::jthread thread_;
  bool packing_ = false;
  bool stopping_ = false;
  bool waiting_ = false;  // for the next look
  std::vector<Done> now_;
  std::size_t tracks_max_ = SIZE_MAX;  // in one pack, when there is little room to work
  std::set<std::uint64_t> left_;       // allocations that stay as they are
  VersionTime too_young_until_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
