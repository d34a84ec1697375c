#include "server/volume/extent_locks.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

// Whether somebody holds a block of `range`, or one of the first `waiters` in the line awaits it.
bool ExtentLocks::conflicts(BlockRange range, std::size_t waiters) const {
  for (const Held& held : held_) {
    if (held.range.overlaps(range)) return true;
  }
  for (std::size_t i = 0; i < waiters; ++i) {
    if (waiting_[i].range.overlaps(range)) return true;
  }
  return false;
}

void ExtentLocks::shared(BlockRange range, UniqueFunction<void()> work) {
  if (!conflicts(range, waiting_.size())) return work();
  waiting_.push_back({range, std::move(work), nullptr});
}

void ExtentLocks::exclusive(BlockRange range, UniqueFunction<void(LockId)> work) {
  if (conflicts(range, waiting_.size())) {
    waiting_.push_back({range, nullptr, std::move(work)});
    return;
  }
  const LockId id = next_id_++;
  held_.push_back({id, range});
  work(id);
}

void ExtentLocks::unlock(LockId id) {
  const auto it =
      std::find_if(held_.begin(), held_.end(), [id](const Held& held) { return held.id == id; });
  CHECK(it != held_.end());
  held_.erase(it);
  run_waiters();
}

void ExtentLocks::run_waiters() {
  if (running_) return;  // an unlock inside a waiter's work: the loop below goes on anyway
  running_ = true;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (conflicts(waiting_[i].range, i)) continue;
      Waiting next = std::move(waiting_[i]);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      if (next.exclusive) {
        const LockId id = next_id_++;
        held_.push_back({id, next.range});
        next.exclusive(id);
      } else {
        next.shared();
      }
      again = true;
      break;
    }
  }
  running_ = false;
}

}  // namespace mariner::volume
