// A small event loop for one thread that waits for nothing but a ring: turns it by hand.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>

#include "logging/io_ring.h"
#include "proto/executor.h"

namespace mariner::bench {

class RingLoop final : public Executor {
 public:
  static Result<std::unique_ptr<RingLoop>> create();

  [[nodiscard]] logging::IoRing& ring() { return *ring_; }

  void post(UniqueFunction<void()> work) override { posted_.push_back(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { deferred_.push_back(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override;
  [[nodiscard]] VersionTime wall_time() const override;
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override;

  // One turn: what has completed, what was posted, what is due, what was deferred.
  void poll();
  // Turns until `ended` says so; sleeps while there is nothing to do.
  template <typename Ended>
  void run_until(Ended ended) {
    while (!ended()) {
      poll();
      if (!ended() && posted_.empty() && deferred_.empty()) wait();
    }
  }

 private:
  RingLoop() = default;
  void wait();

  std::deque<UniqueFunction<void()>> posted_;
  std::deque<UniqueFunction<void()>> deferred_;
  std::multimap<std::chrono::nanoseconds, UniqueFunction<void()>> timers_;
  std::unique_ptr<logging::IoRing> ring_;  // before what it defers to goes
};

}  // namespace mariner::bench
