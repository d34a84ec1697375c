// A disk in which nothing turns: each access takes a constant time and a random one, wherever it
// goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include "logging/phase_meter.h"

namespace mariner::test {

class LatencyDisk final : public logging::TimedDisk {
 public:
  struct Options {
    Time constant{0};
    Time random{0};  // up to so much more, evenly distributed
    std::uint64_t seed = 1;
  };
  explicit LatencyDisk(const Options& options) : options_(options), random_(options.seed) {}

  Result<Time> access(std::uint64_t /*sector*/) override {
    now_ += options_.constant +
            Time(std::uniform_int_distribution<std::int64_t>(0, options_.random.count())(random_));
    return now_;
  }

 private:
  const Options options_;
  std::mt19937_64 random_;
  Time now_{0};
};

}  // namespace mariner::test
