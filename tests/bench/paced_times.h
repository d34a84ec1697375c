// When the writes of an open load are due, from its beginning on. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace mariner::bench {

class PacedTimes {
 public:
  struct Options {
    std::uint64_t count = 1000;
    std::chrono::nanoseconds interval{0};
    std::uint64_t burst = 0;            // writes of one; 0: all are one
    std::chrono::nanoseconds pause{0};  // behind the last one of a burst, instead of the interval
  };

  explicit PacedTimes(const Options& options) : options_(options) {}

  [[nodiscard]] bool done() const { return sent_ == options_.count; }
  // Since the beginning; of the write that comes next.
  [[nodiscard]] std::chrono::nanoseconds next() const { return next_; }
  void advance() {
    ++sent_;
    const bool ends = options_.burst != 0 && sent_ % options_.burst == 0;
    next_ += ends ? options_.pause : options_.interval;
  }

 private:
  Options options_;
  std::uint64_t sent_ = 0;
  std::chrono::nanoseconds next_{0};
};

}  // namespace mariner::bench
