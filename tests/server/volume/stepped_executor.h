// A manual executor whose wall clock can be stepped, as an administrator or NTP does.
#pragma once

#include <utility>

#include "tests/support/manual_executor.h"

namespace mariner::test {

class SteppedExecutor final : public Executor {
 public:
  void post(UniqueFunction<void()> work) override { manual_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { manual_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    manual_.after(delay, std::move(work));
  }
  [[nodiscard]] VersionTime wall_time() const override {
    return {manual_.wall_time().ns + static_cast<std::uint64_t>(step_.count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return manual_.monotonic_time();
  }

  void step_clock(std::chrono::nanoseconds by) { step_ += by; }
  [[nodiscard]] ManualExecutor& manual() { return manual_; }

 private:
  ManualExecutor manual_;
  std::chrono::nanoseconds step_{0};
};

}  // namespace mariner::test
