// Gives the oldest tracks of the log back, when nothing in them is needed any more (design.md,
// invariant 5).
//
// Records are given up in the order of the log, over all its disks: up to the end of the track
// whose records end first, which can then be freed; and so on for as many tracks as are asked for,
// because what many of them hold of a volume is judged in the order of its blocks, for a fraction
// of what each record by itself would cost. So nothing older than a record that was given up is
// ever found again: what counts is the ordinal below which everything has been given up, which is
// durable before a track is freed, not which tracks a crash has left.
//
// The steps, each of which a crash may follow:
//   1. read what the tracks hold (track_digest.h);
//   2. judge it all, or a part of what is alike, for the horizon that is asked for; but for the
//      blocks that the index remembers to have been overwritten before it, of which nothing is
//      needed (index/recent_writes.h);
//   3. make the horizons durable: from then on no moment before them can be opened;
//   4. judge once more, and make each portion spare: what moments that are kept before the horizon
//      show is written again for them (kept_judge.h); then what is the newest of its blocks leaves
//      its base in the image, and what a later moment still shows is logged again as a
//      before-image;
//   5. make that durable, and the ordinal with it;
//   6. have the indexes forget it all, and release the tracks.
// What is needed of the later tracks does not keep the first ones: then fewer are tried. When an
// image lacks a record, the horizons are made durable (step 3) all the same, and the track stays.
// Tracks most of which would have to be logged again for the window's sake stay: that would gain
// nothing. What is kept behind the window is written again, however much of a track it is, because
// it is in the way of what can go: a log that holds little else is for its owner to notice
// (Report::written_again).
// Reading happens on the worker, judging in portions between other events. A step that finds
// something needed after all ends it; nothing has been forgotten by then.
//
// Owner's thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "logging/log_array.h"
#include "proto/executor.h"
#include "server/volume/base_map.h"
#include "server/volume/kept_choice.h"
#include "server/volume/reclaimable.h"
#include "server/volume/release_judge.h"
#include "server/volume/track_digest.h"
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
  // No moment at or after this time may be given up: the window.
  virtual VersionTime keep_from(VolumeId volume) = 0;
  // The moments that are to be kept beyond that.
  using Wish = KeepWish;
  virtual Wish to_keep(VolumeId volume) = 0;
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
    VolumeId volume;                  // whose record is needed
    std::size_t tracks = 0;           // that were freed
    std::uint64_t written_again = 0;  // bytes, for their sake, about
    std::uint64_t room = 0;           // bytes that they took of the disks
  };
  using Done = UniqueFunction<void(Result<Report>)>;

  // `given_up`: the ordinal that was stored last; 0: none.
  Reclaimer(Parts parts, ReclaimerOwner& owner, std::uint64_t given_up)
      : parts_(parts), owner_(owner), given_up_(std::max<std::uint64_t>(given_up, 1)) {}
  ~Reclaimer();  // idle() must hold

  static constexpr std::size_t kTracksMax = 32;

  // Tries the oldest tracks, at most `tracks_max` (from 1 to kTracksMax) of them. One try at a
  // time. `done` never runs before this has returned.
  void reclaim(std::size_t tracks_max, Done done);
  // Ends the present try at its next step.
  void stop() { stopping_ = true; }
  [[nodiscard]] bool idle() const { return !done_; }

 private:
  // Where hosts wait for one write before they send the next, they notice how long a turn takes.
  // The more of them go together, the more is to be judged.
  static constexpr std::size_t kRangesPerTurnMin = 16;
  static constexpr std::size_t kRangesPerTurn = 64;
  static constexpr std::uint64_t kBlocksPerTurn = 512;
  static constexpr std::uint64_t kZeroedBlocksPerTurn = 65536;
  static constexpr std::uint64_t kMovedBlocksAtOnce = 128;
  // Where portions are alike, one of so many is judged at first, if there are many.
  static constexpr std::size_t kPortionsAlike = 4;
  static constexpr std::size_t kPortionsMany = 4 * kPortionsAlike;
  // Hosts may go on overwriting what is being prepared.
  static constexpr unsigned kPreparationsMax = 8;

  struct VolumeState {
    std::shared_ptr<Reclaimable> volume;
    index::IndexMoment horizon;
    bool lags = false;                    // the horizon is where it is because the image is behind
    std::vector<index::KeptMoment> kept;  // before the horizon, by number
    VolumeDigest digest;                  // of the tracks together
    // The last rollback, when blocks were left out of that (overwritten()); nothing: none were.
    std::optional<SequenceNumber> left_out_as_of;
  };
  // How far a volume may be given up, by what is known without its index.
  struct Bounds {
    VersionTime keep;     // nothing from here on
    SequenceNumber most;  // nothing behind this one
    bool lags = false;    // because the image is behind
  };
  // Each disk, its oldest track, and one behind its last complete one.
  using LiveEnds = std::vector<std::tuple<std::uint8_t, std::uint64_t, std::uint64_t>>;
  // What is judged in one turn.
  struct Portion {
    VolumeId volume;
    std::vector<BlockRange> ranges;
  };

  // What must be done before a portion can be forgotten, and what it waits for.
  struct Preparation {
    unsigned times = 0;
    SequenceNumber last_rollback;        // when it was begun, or began anew
    std::vector<BlockRange> punched;     // is done, or under way
    std::vector<BlockRange> moved;       // likewise
    std::vector<BlockRange> to_move;     // still, the next one last
    std::vector<KeptShown> to_keep;      // likewise
    std::uint64_t blocks_under_way = 0;  // of those that are being moved
    std::size_t waiting = 0;
    Result<void> result;
  };

  void read(std::vector<logging::LiveTracks> disks, std::size_t tracks_max);
  void group(std::size_t tracks_max);
  [[nodiscard]] Bounds bounds_of(VolumeId id, Reclaimable& volume);
  [[nodiscard]] bool still_holds(VolumeId id, const VolumeState& state);
  // A step that is to be done later, unless this is gone then.
  [[nodiscard]] UniqueFunction<void()> if_alive(UniqueFunction<void()> step) const;
  using NextVolume = std::map<VolumeId, VolumeState>::iterator;
  void find_horizons(NextVolume next);
  void find_kept(NextVolume next);
  void find_kept_at(NextVolume next, std::vector<VersionTime> times);
  static void add_kept(VolumeState& state, const index::KeptMoment& kept);
  [[nodiscard]] bool keeps_what_it_must(VolumeId id, const VolumeState& state);
  [[nodiscard]] ReleaseJudge::Facts facts_of(const VolumeState& state) const;
  [[nodiscard]] ReleaseJudge::Need judge_numbers(VolumeId id, const VolumeDigest& digest);
  void choose_tracks();
  void try_tracks(std::size_t count);
  [[nodiscard]] static index::RecentWrites::Periods overwritten(VolumeState& state,
                                                                SequenceNumber given_up);
  void add_brought_back(NextVolume next);
  void divide();
  void divide(VolumeId id, const std::vector<BlockRange>& ranges, std::uint64_t blocks_max);
  [[nodiscard]] std::size_t ranges_per_turn() const;
  [[nodiscard]] std::uint64_t end_ordinal() const;
  [[nodiscard]] std::uint64_t room(
      const std::function<bool(const logging::LogArray::Member&)>& counts) const;
  [[nodiscard]] std::uint64_t movable_bytes() const;
  [[nodiscard]] std::uint64_t keepable_bytes() const;
  [[nodiscard]] std::uint64_t written_again() const {
    return (blocks_to_move_ + blocks_to_keep_) * kBlockBytes;
  }
  void judge_some();
  [[nodiscard]] bool portions_are_alike() const;
  void judged(const ReleaseJudge::Verdict& verdict);
  void store_horizons(UniqueFunction<void()> then);
  void wait_for_image(VolumeId volume);
  void forget_some();
  void prepare(const std::shared_ptr<Preparation>& preparation,
               const ReleaseJudge::Verdict& verdict);
  void store_bases();
  void release();
  void release_next(std::size_t disk);
  // Judges the next portion as of one moment, in which `then` runs.
  void judge(UniqueFunction<void(const ReleaseJudge::Verdict&)> then);
  void store(std::optional<std::uint64_t> ordinal, UniqueFunction<void()> then);
  // Ends the try, or goes on with fewer tracks.
  void needed(ReleaseJudge::Need need, VolumeId volume);
  void finish(Result<Report> report);

  void move_some(const std::shared_ptr<Preparation>& preparation);
  void keep_some(const std::shared_ptr<Preparation>& preparation);
  void prepared(const std::shared_ptr<Preparation>& preparation, const Result<void>& result);
  void begin_anew_after_rollback(Preparation& preparation);
  void forget(const std::shared_ptr<Preparation>& preparation,
              const ReleaseJudge::Verdict& verdict);
  // Logs what is shown again, for the moments that show it.
  void keep(VolumeState& state, const KeptShown& shown, UniqueFunction<void(Result<void>)> done);
  // Logs what `range` of the volume held at the horizon as its base.
  void move(VolumeState& state, BlockRange range, UniqueFunction<void(Result<void>)> done);
  [[nodiscard]] VolumeState& state_of_next() { return volumes_.at(portions_[next_].volume); }

  const Parts parts_;
  ReclaimerOwner& owner_;
  Done done_;
  bool stopping_ = false;
  std::uint64_t given_up_;            // all below this ordinal, the first of which is 1
  std::vector<TrackDigest> digests_;  // kept for the next try when they could not be given up
  LiveEnds read_;                     // when they were read
  std::size_t tracks_ = 0;            // of digests_, that are tried
  bool may_try_fewer_ = false;
  std::vector<Portion> portions_;  // of these
  std::size_t next_ = 0;           // portion
  std::uint64_t blocks_to_move_ = 0;
  std::uint64_t room_ = 0;  // of the tracks that are released
  std::uint64_t blocks_to_keep_ = 0;
  std::size_t released_ = 0;  // tracks
  std::map<VolumeId, VolumeState> volumes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
