// A histogram of latencies with a bounded relative error, as HdrHistogram keeps them.
//
// Each power of two is divided into kSteps equal steps, so that a recorded value and the one that a
// percentile answers differ by less than 1/kSteps. Recording is a few instructions and no memory.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mariner::bench {

class LatencyHistogram {
 public:
  static constexpr unsigned kStepBits = 7;
  static constexpr std::uint64_t kSteps = 1u << kStepBits;

  void record(std::uint64_t ns) {
    ++counts_[index_of(ns)];
    ++total_;
    sum_ += static_cast<double>(ns);
    max_ = std::max(max_, ns);
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const { return total_ == 0 ? 0 : sum_ / static_cast<double>(total_); }

  // The smallest recorded value (up to the error) that `percent` of all values do not exceed; 0 if
  // nothing was recorded.
  [[nodiscard]] std::uint64_t percentile(double percent) const {
    if (total_ == 0) return 0;
    // Less a hair: 99.9 % of 1000 is 999, whatever floating point makes of it.
    const double share = percent / 100 * static_cast<double>(total_);
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * (1 - 1e-12)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= std::max<std::uint64_t>(wanted, 1)) return std::min(highest_of(i), max_);
    }
    return max_;
  }

 private:
  // Values below kSteps have a step each; above, the leading kStepBits + 1 bits are the step.
  static std::size_t index_of(std::uint64_t value) {
    if (value < kSteps) return value;
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
    return (std::size_t{shift} + 1) * kSteps + (value >> shift) - kSteps;
  }
  static std::uint64_t highest_of(std::size_t index) {
    if (index < kSteps) return index;
    const std::size_t shift = index / kSteps - 1;
    return ((kSteps + index % kSteps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace mariner::bench
