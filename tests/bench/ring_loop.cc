#include "tests/bench/ring_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <span>
#include <thread>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {

Result<std::unique_ptr<RingLoop>> RingLoop::create() {
  std::unique_ptr<RingLoop> loop(new RingLoop);
  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(*loop);
  if (!ring) return ring.error();
  loop->ring_ = *std::move(ring);
  loop->listen();
  return loop;
}

RingLoop::RingLoop() : wake_(::eventfd(0, EFD_CLOEXEC)) { CHECK(wake_ >= 0); }

RingLoop::~RingLoop() {
  if (ring_) {
    // The read of the eventfd is under way: it ends.
    const std::uint64_t one = 1;
    stopping_ = true;
    CHECK(::write(wake_, &one, sizeof one) == sizeof one);
    while (ring_->in_flight() > 0) ring_->wait();
  }
  ::close(wake_);
}

void RingLoop::listen() {
  ring_->read(wake_, std::as_writable_bytes(std::span(&wakes_, 1)), 0, 0, [this](std::int64_t) {
    if (!stopping_) listen();
  });
}

void RingLoop::post(UniqueFunction<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  if (std::this_thread::get_id() == owner_) return;
  const std::uint64_t one = 1;
  CHECK(::write(wake_, &one, sizeof one) == sizeof one);
}

bool RingLoop::idle() {
  const std::lock_guard lock(mutex_);
  return posted_.empty() && deferred_.empty();
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
  std::deque<UniqueFunction<void()>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (UniqueFunction<void()>& work : posted) work();
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
  if (ring_->in_flight() > 1 || timers_.empty()) return ring_->wait();
  std::this_thread::sleep_for(timers_.begin()->first - monotonic_time());
}

}  // namespace mariner::bench
