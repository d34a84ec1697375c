// What can happen without end, in a log that is to stay readable: so many lines in a time, and then
// how many more there were.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace mariner::node {

class LogLimiter {
 public:
  struct Options {
    std::uint32_t lines_max = 5;
    std::chrono::seconds time{60};
  };
  explicit LogLimiter(const Options& options) : options_(options) {}

  struct Verdict {
    bool write = false;
    // Those that were not written in the time that has ended: to be told first.
    std::uint64_t untold = 0;
  };
  // One more line at `now` (of a clock that does not go back).
  Verdict admit(std::chrono::nanoseconds now) {
    Verdict verdict;
    if (!since_ || now - *since_ >= options_.time) {
      verdict.untold = untold_;
      since_ = now;
      told_ = 0;
      untold_ = 0;
    }
    verdict.write = told_ < options_.lines_max;
    ++(verdict.write ? told_ : untold_);
    return verdict;
  }

 private:
  const Options options_;
  std::optional<std::chrono::nanoseconds> since_;
  std::uint64_t told_ = 0;
  std::uint64_t untold_ = 0;
};

}  // namespace mariner::node
