// An executor whose clocks can be put forward: what is between two moments of a test takes no time.
// Timers run as the other one's do.
#pragma once

#include <chrono>
#include <utility>

#include "proto/executor.h"

namespace mariner::test {

class ShiftedClock final : public Executor {
 public:
  explicit ShiftedClock(Executor& executor) : executor_(executor) {}

  void advance(std::chrono::nanoseconds by) { shift_ += by; }

  void post(UniqueFunction<void()> work) override { executor_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { executor_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    executor_.after(delay, std::move(work));
  }
  [[nodiscard]] VersionTime wall_time() const override {
    return {executor_.wall_time().ns + static_cast<std::uint64_t>(shift_.count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return executor_.monotonic_time() + shift_;
  }

 private:
  Executor& executor_;
  std::chrono::nanoseconds shift_{0};
};

}  // namespace mariner::test
