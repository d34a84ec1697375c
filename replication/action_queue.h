// What a state machine wants done, carried out in order: whatever carrying an action out brings
// back in queues behind what is at hand.
#pragma once

#include <deque>
#include <utility>
#include <vector>

namespace mariner::replication {

template <typename Action>
class ActionQueue {
 public:
  // Takes `actions`, and carries out all that is queued, unless that is going on already.
  // `carry_out(Action&)` says whether to go on; when it says no, this may be gone.
  template <typename CarryOut>
  void run(std::vector<Action>& actions, CarryOut carry_out) {
    for (Action& action : actions) queue_.push_back(std::move(action));
    if (std::exchange(running_, true)) return;
    while (!queue_.empty()) {
      Action action = std::move(queue_.front());
      queue_.pop_front();
      if (!carry_out(action)) return;
    }
    running_ = false;
  }

  // What has not been carried out never is.
  void clear() { queue_.clear(); }

 private:
  std::deque<Action> queue_;
  bool running_ = false;
};

}  // namespace mariner::replication
