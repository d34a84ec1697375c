#include "tests/support/manual_executor.h"

#include "proto/check.h"

namespace mariner::test {

ManualExecutor::~ManualExecutor() = default;

void ManualExecutor::post(UniqueFunction<void()> work) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(work));
}

void ManualExecutor::defer(UniqueFunction<void()> work) { deferred_.push_back(std::move(work)); }

void ManualExecutor::after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) {
  timers_.emplace(now_ + delay, std::move(work));
}

std::size_t ManualExecutor::turn() {
  {
    // (A deque costs two allocations, even an empty one: most events leave nothing for a turn.)
    const std::lock_guard lock(mutex_);
    if (posted_.empty() && deferred_.empty()) return 0;
  }
  std::deque<UniqueFunction<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  std::size_t count = work.size();
  for (auto& piece : work) piece();
  work.clear();
  work.swap(deferred_);
  count += work.size();
  for (auto& piece : work) piece();
  return count;
}

void ManualExecutor::run_ready() {
  for (std::size_t turns = 0; turn() > 0; ++turns) CHECK(turns < kTurnsMax);
}

void ManualExecutor::advance(std::chrono::nanoseconds by) {
  const std::chrono::nanoseconds end = now_ + by;
  run_ready();
  for (std::size_t turns = 0; !timers_.empty() && timers_.begin()->first <= end; ++turns) {
    CHECK(turns < kTurnsMax);
    auto timer = timers_.extract(timers_.begin());
    now_ = timer.key();
    timer.mapped()();
    run_ready();
  }
  now_ = end;
}

void ManualExecutor::run_until_idle() {
  run_ready();
  for (std::size_t turns = 0; !timers_.empty(); ++turns) {
    CHECK(turns < kTurnsMax);
    advance(timers_.begin()->first - now_);
  }
}

bool ManualExecutor::idle() const {
  const std::lock_guard lock(mutex_);
  return posted_.empty() && deferred_.empty() && timers_.empty();
}

}  // namespace mariner::test
