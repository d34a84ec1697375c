// How long the event loop looks for the log's completions before it sleeps.
//
// A thread that sleeps until its write is durable is woken late: in a virtual machine, where an
// idle processor is given back to the host, by tens of microseconds, a third of the write itself.
// To look again and again instead takes a processor, and helps nobody when many writes are under
// way, whose batches are long and whose loop is busy anyway. So it is done for lone writes only,
// and only where it pays: a few are tried in either way, the faster way is kept for some thousands,
// then both are tried again.
//
// Pure bookkeeping. Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>

namespace mariner::node {

class Patience {
 public:
  using Time = std::chrono::nanoseconds;

  static constexpr std::uint32_t kLoneRecordsMax = 2;  // of a batch
  static constexpr std::uint32_t kTrialBatches = 64;   // of each way
  static constexpr std::uint32_t kKeptBatches = 8192;

  // Without `polls` it never looks.
  explicit Patience(bool polls) : polls_(polls) {}

  // A batch of so many records became durable so long after it was dispatched.
  void batch_done(std::uint32_t records, Time duration);
  // How long to look, with a batch under way. 0: not at all.
  [[nodiscard]] Time value() const;

 private:
  enum class Phase { kTrySleeping, kTryPolling, kKept };
  // What a stall of the disk takes says nothing about the way.
  static constexpr Time kStall = std::chrono::milliseconds(1);

  void end_phase();

  const bool polls_;
  Phase phase_ = Phase::kTrySleeping;
  std::uint32_t batches_ = 0;  // of this phase
  Time spent_{0};              // on them
  Time asleep_{0};             // mean of the last trial of each way
  Time awake_{0};
  bool polling_pays_ = false;
  bool lone_ = false;  // the last batch was
};

}  // namespace mariner::node
