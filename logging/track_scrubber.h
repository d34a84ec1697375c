// Verifies the complete tracks of a log disk in the background, round after round in the order of
// their allocations, so that damage is noticed while something can still be done about it.
//
// Reads one piece at a time (TrackVerifier::kPieceBlocks), at most Options::bytes_per_second on the
// average and without catching up, and lets the foreground go first for a moment. A round takes as
// long as the whole log would at that rate, however little it holds. The track that is being filled
// is not verified; of its blocks only the header is read, to tell where the one before it ends. A
// track that is released meanwhile is no damage.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "logging/disk.h"
#include "logging/track.h"
#include "logging/track_list.h"
#include "logging/track_verifier.h"
#include "proto/executor.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::logging {

class TrackScrubber {
 public:
  // Damaged tracks that are remembered; what more are found is reported in each round again.
  static constexpr std::size_t kDamagedTracksMax = 256;
  static constexpr std::chrono::nanoseconds kRoundMin = std::chrono::seconds(1);

  struct Parts {  // all outlive it
    Disk& disk;
    Executor& executor;
    const Superblock& superblock;
    const TrackList& tracks;
  };
  struct Options {
    std::uint64_t bytes_per_second = 0;  // 0: start() does nothing
  };
  struct Owner {
    // The allocation that is being filled: those below it are complete.
    UniqueFunction<std::uint64_t()> current_allocation;
    // Whether the foreground is writing at the moment.
    UniqueFunction<bool()> busy;
    // Damage that was not there, or not like this, when the track was verified last.
    UniqueFunction<void(const TrackDamage&)> report;
  };
  struct Progress {
    std::uint64_t bytes = 0;           // read and verified, since the start
    std::uint64_t rounds = 0;          // completed
    VersionTime last_round;            // when the last of them was; 0: none yet
    std::uint64_t tracks = 0;          // that were verified, since the start
    std::uint64_t damaged_blocks = 0;  // known at the moment, in tracks that are live
  };

  TrackScrubber(const Parts& parts, const Options& options, Owner owner);
  ~TrackScrubber();  // idle() must hold
  TrackScrubber(const TrackScrubber&) = delete;
  TrackScrubber& operator=(const TrackScrubber&) = delete;

  void start();  // once
  // Stops after the read in flight.
  void stop() { stopping_ = true; }
  [[nodiscard]] bool idle() const { return !in_flight_; }
  [[nodiscard]] bool enabled() const { return options_.bytes_per_second > 0; }

  [[nodiscard]] Progress progress() const;
  // What is known of live tracks, in the order of their allocations.
  [[nodiscard]] std::vector<TrackDamage> damage() const;

 private:
  static constexpr auto kYield = std::chrono::milliseconds(2);
  static constexpr auto kYieldMax = std::chrono::milliseconds(50);

  struct NextHeader {
    std::uint64_t allocation = 0;
    std::uint64_t first_batch = 0;
  };
  struct Found {
    std::vector<TrackDamage> damage;
    std::uint64_t blocks = 0;
  };

  void wake_at(std::chrono::nanoseconds time);
  void step();
  void proceed();
  bool begin_track();
  bool look_for_end(std::uint64_t allocation, std::uint64_t current);
  void header_read(const Result<void>& result);
  void piece_read(const Result<void>& result);
  void finish_track();
  void end_round();
  void read(std::uint64_t block, std::uint32_t count,
            void (TrackScrubber::*then)(const Result<void>&));
  [[nodiscard]] std::chrono::nanoseconds round_time() const;

  const Parts parts_;
  const Options options_;
  Owner owner_;
  Payload buffer_;
  // Of the round.
  std::chrono::nanoseconds round_began_{0};
  std::uint64_t next_ = 0;  // allocation to be verified next; 0: from the oldest
  std::uint64_t expected_batch_ = 0;
  VersionTime last_time_;
  std::optional<NextHeader> next_header_;  // the next track behind `next_` that has a header
  std::uint64_t looked_ = 0;               // the allocation whose header is looked at
  std::optional<TrackVerifier> verifier_;

  std::chrono::nanoseconds due_{0};  // not before
  std::chrono::nanoseconds yielded_{0};
  bool started_ = false;
  bool in_flight_ = false;
  bool stopping_ = false;
  Progress progress_;
  std::map<std::uint64_t, Found> found_;  // by allocation
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
