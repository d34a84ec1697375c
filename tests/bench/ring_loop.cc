#include "tests/bench/ring_loop.h"

#include <thread>
#include <utility>

namespace mariner::bench {

Result<std::unique_ptr<RingLoop>> RingLoop::create() {
  std::unique_ptr<RingLoop> loop(new RingLoop);
  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(*loop);
  if (!ring) return ring.error();
  loop->ring_ = *std::move(ring);
  return loop;
}

void RingLoop::after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) {
  timers_.emplace(monotonic_time() + delay, std::move(work));
}

VersionTime RingLoop::wall_time() const {
  return {static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count())};
}

std::chrono::nanoseconds RingLoop::monotonic_time() const {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void RingLoop::poll() {
  ring_->reap();
  for (std::size_t left = posted_.size(); left > 0; --left) {
    UniqueFunction<void()> work = std::move(posted_.front());
    posted_.pop_front();
    work();
  }
  while (!timers_.empty() && timers_.begin()->first <= monotonic_time()) {
    UniqueFunction<void()> work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
  for (std::size_t left = deferred_.size(); left > 0; --left) {
    UniqueFunction<void()> work = std::move(deferred_.front());
    deferred_.pop_front();
    work();
  }
}

void RingLoop::wait() {
  if (ring_->in_flight() > 0) return ring_->wait();
  if (!timers_.empty()) std::this_thread::sleep_for(timers_.begin()->first - monotonic_time());
}

}  // namespace mariner::bench
