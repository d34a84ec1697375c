// How long to wait before the next attempt: twice as long each time, up to a bound, with jitter, so
// that nodes which lost the same server do not all come back at once.
#pragma once

#include <chrono>
#include <cstdint>

namespace mariner {

struct BackoffTimes {
  std::chrono::milliseconds least{20};
  std::chrono::milliseconds most{1000};
  std::uint64_t seed = 1;  // another one for each node
};

class Backoff {
 public:
  explicit Backoff(BackoffTimes times);

  // Half to the whole of the time that it is at; the first is at `least`.
  [[nodiscard]] std::chrono::nanoseconds next();
  // The next wait is the first again.
  void succeeded() { time_ = times_.least; }

 private:
  BackoffTimes times_;
  std::chrono::milliseconds time_;
  std::uint64_t random_;
};

}  // namespace mariner
