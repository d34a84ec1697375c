// An executor whose clocks can be put forward: what is between two moments of a test takes no time.
// Timers run as the other one's do, and those that are due when the clock is put forward run then.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "proto/executor.h"

namespace mariner::test {

class ShiftedClock final : public Executor {
 public:
  explicit ShiftedClock(Executor& executor) : executor_(executor) {}

  void advance(std::chrono::nanoseconds by) {
    shift_ += by;
    // (One may begin another one.)
    while (!timers_.empty() && timers_.begin()->first <= monotonic_time()) {
      const auto due = timers_.extract(timers_.begin());
      run(*due.mapped());
    }
  }

  // As somebody sets the clock: the monotonic one does not notice.
  void step_wall(std::chrono::nanoseconds by) { step_ += by; }

  void post(UniqueFunction<void()> work) override { executor_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { executor_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    const auto timer = std::make_shared<UniqueFunction<void()>>(std::move(work));
    timers_.emplace(monotonic_time() + delay, timer);
    executor_.after(delay, [timer] { run(*timer); });
  }
  [[nodiscard]] VersionTime wall_time() const override {
    return {executor_.wall_time().ns + static_cast<std::uint64_t>((shift_ + step_).count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return executor_.monotonic_time() + shift_;
  }

 private:
  static void run(UniqueFunction<void()>& timer) {
    if (auto work = std::exchange(timer, nullptr)) work();
  }

  Executor& executor_;
  // By when each is due, those that have run among them until the clock is put past them.
  std::multimap<std::chrono::nanoseconds, std::shared_ptr<UniqueFunction<void()>>> timers_;
  std::chrono::nanoseconds shift_{0};
  std::chrono::nanoseconds step_{0};
};

}  // namespace mariner::test
