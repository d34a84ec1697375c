// Writes that have begun and have no place in the order yet: they wait for a lock, or read what
// they merge with. Who must know that nothing of them comes later waits until they have one.
//
// Owner's thread only. Bounded by the commands that the sessions admit.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <utility>

#include "proto/unique_function.h"

namespace mariner::volume {

class UnplacedWrites {
 public:
  using Ticket = std::uint64_t;

  [[nodiscard]] Ticket begin() {
    open_.insert(++last_);
    return last_;
  }

  // The write of `ticket` has its place, or never will.
  void end(Ticket ticket) {
    open_.erase(ticket);
    while (!waiting_.empty() && placed(waiting_.front().last)) {
      UniqueFunction<void()> then = std::move(waiting_.front().then);
      waiting_.pop_front();
      then();
    }
  }

  // Runs `then` once every write that began before this call has ended: at once, if all have.
  void when_placed(UniqueFunction<void()> then) {
    if (waiting_.empty() && open_.empty()) return then();
    waiting_.push_back({last_, std::move(then)});
  }

 private:
  struct Waiting {
    Ticket last;  // of those that it waits for
    UniqueFunction<void()> then;
  };
  [[nodiscard]] bool placed(Ticket last) const { return open_.empty() || *open_.begin() > last; }

  std::set<Ticket> open_;
  std::deque<Waiting> waiting_;
  Ticket last_ = 0;
};

}  // namespace mariner::volume
