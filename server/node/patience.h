// How long the event loop looks for the log's completions before it sleeps.
//
// A thread that sleeps until its write is durable is woken late: in a virtual machine, where an
// idle processor is given back to the host, by tens of microseconds, a third of the write itself.
// To look again and again instead takes a processor, and helps nobody when many writes are under
// way, whose batches are long and whose loop is busy anyway. So it is done for lone writes only,
// and only where it pays: some are tried in either way, by turns, the way with the better median is
// kept for some thousands, then both are tried again.
//
// Pure bookkeeping. Owner's thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace mariner::node {

class Patience {
 public:
  using Time = std::chrono::nanoseconds;

  static constexpr std::uint32_t kLoneRecordsMax = 2;  // of a batch
  static constexpr std::uint32_t kTrialBatches = 128;  // half of them in each way
  static constexpr std::uint32_t kTurnBatches = 16;    // before the other way has its turn
  static constexpr std::uint32_t kKeptBatches = 4096;

  // Without `polls` it never looks.
  explicit Patience(bool polls) : polls_(polls) {}

  // A batch of so many records became durable so long after it was dispatched.
  void batch_done(std::uint32_t records, Time duration);
  // How long to look, with a batch under way. 0: not at all.
  [[nodiscard]] Time value() const;

 private:
  // Beyond it something else is wrong, and a processor better spent.
  static constexpr Time kLongest = std::chrono::milliseconds(1);

  // Of the trial: whether it is the turn of looking.
  [[nodiscard]] bool looks() const { return batches_ / kTurnBatches % 2 == 1; }
  void decide();

  const bool polls_;
  bool trying_ = true;
  std::uint32_t batches_ = 0;  // of this trial, or since the last one
  std::array<Time, kTrialBatches / 2> asleep_{};
  std::array<Time, kTrialBatches / 2> awake_{};
  std::uint32_t asleep_count_ = 0;
  std::uint32_t awake_count_ = 0;
  Time patience_{0};   // what the last trial has said
  bool lone_ = false;  // the last batch was
};

}  // namespace mariner::node
