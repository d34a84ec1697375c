// A loop whose steps may end at once or later: what would recurse if each step began the next one.
#pragma once

#include <utility>

namespace mariner::index {

class Repeater {
 public:
  // Does `step` once; if that, or what it has begun, comes here again before it returns, once more,
  // and so on. The owner keeps this alive while it runs.
  template <typename Step>
  void run(Step step) {
    again_ = true;
    if (running_) return;
    running_ = true;
    while (std::exchange(again_, false)) step();
    running_ = false;
  }

 private:
  bool running_ = false;
  bool again_ = false;
};

}  // namespace mariner::index
