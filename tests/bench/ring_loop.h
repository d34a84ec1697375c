// A small event loop for one thread that waits for nothing but a ring: turns it by hand.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "logging/io_ring.h"
#include "proto/executor.h"

namespace mariner::bench {

class RingLoop final : public Executor {
 public:
  static Result<std::unique_ptr<RingLoop>> create();
  ~RingLoop() override;

  [[nodiscard]] logging::IoRing& ring() { return *ring_; }

  void post(UniqueFunction<void()> work) override;
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
      if (!ended() && idle()) wait();
    }
  }

 private:
  RingLoop();
  [[nodiscard]] bool idle();
  void wait();
  void listen();

  std::mutex mutex_;
  std::deque<UniqueFunction<void()>> posted_;  // guarded by mutex_
  const std::thread::id owner_ = std::this_thread::get_id();
  bool stopping_ = false;
  int wake_ = -1;            // an eventfd: somebody else has posted
  std::uint64_t wakes_ = 0;  // what was read from it
  std::deque<UniqueFunction<void()>> deferred_;
  std::multimap<std::chrono::nanoseconds, UniqueFunction<void()>> timers_;
  std::unique_ptr<logging::IoRing> ring_;  // before what it defers to goes
};

}  // namespace mariner::bench
