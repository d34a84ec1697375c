// A policy of cleaning under a load, until the state is steady, and what it cost then.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tests/bench/cleaner_model.h"
#include "tests/bench/cleaner_policy.h"

namespace mariner::bench {

// Overwrites of one block at random: `hot_writes` of them to `hot_blocks` of the volume, both as
// shares, 0: all alike. After `change` host writes the hot blocks are others; 0: never.
struct CleanerLoad {
  double hot_writes = 0;
  double hot_blocks = 0;
  WriteTime change = 0;
};

// The blocks of so many writes.
std::vector<std::uint32_t> make_writes(const CleanerLoad& load, std::uint32_t volume_blocks,
                                       std::size_t writes, std::uint64_t seed);

struct CleanerResult {
  double amplification = 0;  // blocks appended for a host write
  double before_images = 0;  // of those
  double moved = 0;          // of those
  // How far back moments could be opened, as a share of the log (in host writes); history takes
  // just as much of its room.
  double held = 0;  // mean
  double held_min = 0;
  bool holds = false;   // all of the window, all the time
  double current = 0;   // current versions in the log, mean share
  double free = 0;      // mean share
  bool steady = false;  // the last two turns before measuring differ by less than 1 %
  double turns = 0;     // host writes of the whole log, before measuring
};

class CleanerRun {
 public:
  // Tracks that are free after each write, at the least, as a share of the log.
  static constexpr double kKeptFree = 1.0 / 32;
  // Of the log, in host writes.
  static constexpr unsigned kTurnsMin = 3, kTurnsMax = 8, kTurnsMeasured = 2;

  // `after_write` runs after each write; may be empty.
  CleanerRun(const CleanerLogOptions& options, CleanerPolicy& policy,
             std::function<void(const CleanerModel&)> after_write = {});

  void write(std::uint32_t block);
  // `writes` are enough for (kTurnsMax + kTurnsMeasured) turns.
  CleanerResult measure(std::span<const std::uint32_t> writes);

  [[nodiscard]] const CleanerModel& model() const { return model_; }

 private:
  CleanerModel model_;
  CleanerPolicy& policy_;
  const std::function<void(const CleanerModel&)> after_write_;
  const std::uint32_t kept_free_;
};

}  // namespace mariner::bench
