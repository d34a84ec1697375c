// An Executor that a test turns by hand, with a clock that moves only when it is told to.
//
// post() may be called from any thread, everything else from the test's thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "proto/executor.h"

namespace mariner::test {

class ManualExecutor final : public Executor {
 public:
  // 2026-01-01 00:00:00 UTC: where the wall clock starts.
  static constexpr std::uint64_t kWallStartNs = 1'767'225'600'000'000'000;

  ManualExecutor() = default;
  ~ManualExecutor() override;  // drops what has not run
  ManualExecutor(const ManualExecutor&) = delete;
  ManualExecutor& operator=(const ManualExecutor&) = delete;

  void post(UniqueFunction<void()> work) override;
  void defer(UniqueFunction<void()> work) override;
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override;
  [[nodiscard]] VersionTime wall_time() const override {
    return {kWallStartNs + static_cast<std::uint64_t>(now_.count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override { return now_; }

  // One turn of the loop: what has been posted so far, then what has been deferred so far. The
  // clock stands. Returns how many pieces of work ran.
  std::size_t turn();
  // Turns until nothing is posted or deferred. The clock stands.
  void run_ready();
  // Moves the clock, running what becomes due at its own time, and what that causes.
  void advance(std::chrono::nanoseconds by);
  // Runs everything, timers too, until nothing is left. Aborts after kTurnsMax turns: whatever
  // keeps itself alive would otherwise never end.
  void run_until_idle();
  [[nodiscard]] bool idle() const;

 private:
  static constexpr std::size_t kTurnsMax = 10'000'000;
  using Timers = std::multimap<std::chrono::nanoseconds, UniqueFunction<void()>>;

  mutable std::mutex mutex_;
  std::deque<UniqueFunction<void()>> posted_;  // guarded by mutex_
  std::deque<UniqueFunction<void()>> deferred_;
  Timers timers_;  // by due time; of equal ones the earlier set first
  std::chrono::nanoseconds now_{0};
};

}  // namespace mariner::test
