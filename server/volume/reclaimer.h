// Gives the oldest track of the log back, when nothing in it is needed any more (design.md,
// invariant 5).
//
// Records are given up in the order of the log, over all its disks: up to the end of the track
// whose records end first, which can then be freed. So nothing older than a record that was given
// up is ever found again: what counts is the ordinal below which everything has been given up,
// which is durable before a track is freed, not which tracks a crash has left.
//
// The steps, each of which a crash may follow:
//   1. read the records up to there;
//   2. judge them all, for the horizon that is asked for;
//   3. make the horizons durable: from then on no moment before them can be opened;
//   4. judge once more, and make each portion spare: what is the newest of its blocks leaves its
//      base in the image, what a kept moment still shows is logged again as a before-image;
//   5. make that durable, and the ordinal with it;
//   6. have the indexes forget it all, and release the track.
// When an image lacks a record, the horizons are made durable (step 3) all the same, and the track
// stays. A track most of which would have to be logged again stays: that would gain nothing.
// Reading happens on the worker, judging in portions between other events. A step that finds a
// record needed after all ends it; nothing has been forgotten by then.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "logging/log_array.h"
#include "logging/oldest_records.h"
#include "proto/executor.h"
#include "server/volume/base_map.h"
#include "server/volume/reclaimable.h"
#include "server/volume/release_judge.h"
#include "server/volume/volume_history.h"
#include "server/volume/worker.h"

namespace mariner::volume {

// What must be known of a volume before the log gives up records of it.
struct VolumeRelease {
  VolumeId volume;
  Horizon horizon;
  std::vector<BaseMap::Page> base_pages;
  bool based_everywhere = false;  // the images hold what all of the volume was at the horizon
};

class ReclaimerOwner {
 public:
  using Done = UniqueFunction<void(Result<void>)>;

  virtual ~ReclaimerOwner() = default;
  // Null: the volume is gone, and nobody needs its records.
  virtual std::shared_ptr<Reclaimable> find(VolumeId volume) = 0;
  // No moment at or after this time may be given up: the window, views, marks.
  virtual VersionTime keep_from(VolumeId volume) = 0;
  // Makes all of it durable, in one step; with `ordinal`, that every record of the log below it has
  // been given up.
  virtual void store(std::vector<VolumeRelease> releases, std::optional<std::uint64_t> ordinal,
                     Done done) = 0;
};

class Reclaimer {
 public:
  struct Parts {  // all outlive it
    logging::LogArray& log;
    Worker& worker;
    Executor& executor;
  };
  enum class Outcome {
    kFreed,
    kNothing,  // no track is complete
    kNeeded,   // by history that is to be kept
    kLater,    // soon: the image is behind, or something changed meanwhile
  };
  struct Report {
    Outcome outcome = Outcome::kNothing;
    VolumeId volume;  // whose record is needed
  };
  using Done = UniqueFunction<void(Result<Report>)>;

  // `given_up`: the ordinal that was stored last; 0: none.
  Reclaimer(Parts parts, ReclaimerOwner& owner, std::uint64_t given_up)
      : parts_(parts), owner_(owner), given_up_(given_up) {}
  ~Reclaimer();  // idle() must hold

  // Tries the oldest track. One at a time. `done` never runs before this has returned.
  void reclaim(Done done);
  // Ends the present try at its next step.
  void stop() { stopping_ = true; }
  [[nodiscard]] bool idle() const { return !done_; }

 private:
  static constexpr std::size_t kRecordsPerTurn = 128;
  static constexpr std::uint64_t kMovedBlocksPerTurn = 2048;  // 8 MiB in memory

  struct VolumeState {
    std::shared_ptr<Reclaimable> volume;
    index::IndexMoment horizon;
    bool lags = false;        // the horizon is where it is because the image is behind
    SequenceNumber last;      // highest number in the track
    SequenceNumber given_up;  // of a write in it
    std::uint64_t payload_bytes = 0;
  };
  // How far a volume may be given up, by what is known without its index.
  struct Bounds {
    VersionTime keep;     // nothing from here on
    SequenceNumber most;  // nothing behind this one
    bool lags = false;    // because the image is behind
  };
  using Verdicts = std::vector<ReleaseJudge::Verdict>;  // of records from next_ on
  // Each disk, its oldest track, and whether that is complete.
  using OldestTracks = std::vector<std::tuple<std::uint8_t, std::uint64_t, bool>>;
  using Records = std::vector<std::pair<logging::Record, logging::LogLocation>>;

  void group();
  [[nodiscard]] Bounds bounds_of(VolumeId id, Reclaimable& volume);
  [[nodiscard]] bool still_holds(VolumeId id, const VolumeState& state);
  void find_horizons(std::map<VolumeId, VolumeState>::iterator next);
  [[nodiscard]] std::uint64_t movable_bytes() const;
  void judge_some();
  void judged(const Verdicts& verdicts);
  void store_horizons(UniqueFunction<void()> then);
  void wait_for_image(VolumeId volume);
  void forget_some();
  void prepare(const Verdicts& verdicts);
  void store_bases();
  void release();
  // Judges the records from next_ to `end` as of one moment, in which `then` runs.
  void judge(std::size_t end, UniqueFunction<void(const Verdicts&)> then);
  void store(std::optional<std::uint64_t> ordinal, UniqueFunction<void()> then);
  void needed(ReleaseJudge::Need need, VolumeId volume);
  void finish(Result<Report> report);

  // What must be done before a portion of records can be forgotten, and what it waits for.
  struct Preparation {
    std::map<VolumeId, std::vector<BlockRange>> rebased;
    std::map<VolumeId, std::vector<BlockRange>> punched;
    std::map<VolumeId, std::vector<BlockRange>> moved;
    std::size_t waiting = 1;
    Result<void> result;
  };
  void prepared(const std::shared_ptr<Preparation>& preparation, const Result<void>& result,
                std::size_t end);
  void forget(const Preparation& preparation, const Verdicts& verdicts);
  // Logs what `range` of the volume held at the horizon as its base.
  void move(VolumeState& state, BlockRange range, UniqueFunction<void(Result<void>)> done);

  const Parts parts_;
  ReclaimerOwner& owner_;
  Done done_;
  bool stopping_ = false;
  std::uint64_t given_up_;
  logging::OldestRecords oldest_;     // without its records
  std::shared_ptr<Records> records_;  // kept for the next try when they could not be given up
  OldestTracks read_;                 // when they were read
  std::size_t next_ = 0;
  std::uint64_t blocks_to_move_ = 0;  // of the whole track
  std::map<VolumeId, VolumeState> volumes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
