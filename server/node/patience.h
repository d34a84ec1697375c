// How long the event loop looks for the log's completions before it sleeps.
//
// A thread that sleeps until its write is durable is woken late: in a virtual machine, where an
// idle processor is given back to the host, by tens of microseconds, up to a third of the write
// itself. To look again and again instead takes a processor. So the loop sleeps for the first half
// of the time that such writes mostly take, and looks in the second (what Linux calls hybrid
// polling). It helps nobody when many writes are under way, whose batches are long and whose loop
// is busy anyway: it is done for lone writes only, and only where it pays. Some are tried in either
// way, by turns, the way with the better median is kept for some thousands, then both are tried
// again.
//
// Pure bookkeeping. Owner's thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace mariner::node {

// What is under way that ends without a host, and when to look for its end. Times are those of the
// loop's monotonic clock.
struct Outlook {
  bool under_way = false;
  std::chrono::nanoseconds from{0};
  std::chrono::nanoseconds until{0};  // not after `from`: not at all
};

class Patience {
 public:
  using Time = std::chrono::nanoseconds;

  // Of a batch that counts as lone. What is longer takes so long that waking up does not matter,
  // and its host has others under way, as a rule.
  static constexpr std::uint32_t kLoneRecordsMax = 2;
  static constexpr std::uint32_t kLoneBytesMax = 64 << 10;
  static constexpr std::uint32_t kTrialBatches = 128;  // half of them in each way
  static constexpr std::uint32_t kTurnBatches = 16;    // before the other way has its turn
  static constexpr std::uint32_t kKeptBatches = 4096;
  // A disk that takes longer is worth no processor.
  static constexpr Time kLongest = std::chrono::milliseconds(1);

  // Without `polls` it never looks.
  explicit Patience(bool polls) : polls_(polls) {}
  void set_polls(bool polls) { polls_ = polls; }

  // A batch of so many records became durable so long after it was dispatched.
  void batch_done(std::uint32_t records, std::uint32_t bytes, Time duration);
  // Asked whenever the loop would sleep: a batch counts from when it is first heard of here.
  [[nodiscard]] Outlook outlook(Time now, bool under_way);

 private:
  // Of the trial: whether it is the turn of looking.
  [[nodiscard]] bool turn_of_looking() const { return batches_ / kTurnBatches % 2 == 1; }
  [[nodiscard]] bool looks() const;
  void expect(Time duration);
  void decide();

  bool polls_;
  bool trying_ = true;
  std::uint32_t batches_ = 0;  // of this trial, or since the last one
  std::array<Time, kTrialBatches / 2> asleep_{};
  std::array<Time, kTrialBatches / 2> awake_{};
  std::uint32_t asleep_count_ = 0;
  std::uint32_t awake_count_ = 0;
  bool pays_ = false;   // as the last trial has said
  Time expected_{0};    // what a lone batch mostly takes; 0: none has been seen
  Time since_{0};       // when the batch under way was first heard of
  bool waits_ = false;  // since then
  bool lone_ = false;   // the last batch was
};

}  // namespace mariner::node
