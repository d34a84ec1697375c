// Extent locks of one volume: a partial-block write holds the blocks that it merges, a rollback
// the whole volume, from the read of the old bytes until the write has its place in the order.
//
// Ordinary writes only ask whether somebody holds what they want (free when nobody does) and wait
// their turn behind it. Waiters run in order, so nobody starves. Owner's thread only. Bounded by
// the commands that the sessions admit.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner::volume {

class ExtentLocks {
 public:
  using LockId = std::uint64_t;

  // Runs `work` as soon as nobody holds or awaits a block of `range`: now, if nobody does.
  void shared(BlockRange range, UniqueFunction<void()> work);
  // The same, and the range is held from then on, until unlock() of the id given to `work`.
  void exclusive(BlockRange range, UniqueFunction<void(LockId)> work);
  void unlock(LockId id);

  [[nodiscard]] bool idle() const { return held_.empty() && waiting_.empty(); }

 private:
  struct Held {
    LockId id;
    BlockRange range;
  };
  struct Waiting {
    BlockRange range;
    UniqueFunction<void()> shared;
    UniqueFunction<void(LockId)> exclusive;
  };
  [[nodiscard]] bool conflicts(BlockRange range, std::size_t waiters) const;
  void run_waiters();

  std::vector<Held> held_;
  std::deque<Waiting> waiting_;
  LockId next_id_ = 1;
  bool running_ = false;
};

}  // namespace mariner::volume
