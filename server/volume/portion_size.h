// How much goes to an image between two flushes: so much that a flush waits for it neither long nor
// all the time. Owner's thread only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mariner::volume {

class PortionSize {
 public:
  using Duration = std::chrono::nanoseconds;
  // What writing and flushing a portion should take: they shrink and grow until it does.
  static constexpr Duration kTimeMin = std::chrono::milliseconds(100);
  static constexpr Duration kTimeMax = std::chrono::milliseconds(400);
  static constexpr std::uint64_t kBytesMin = 1u << 20;

  PortionSize(std::uint64_t first, std::uint64_t most)
      : most_(most), least_(std::min(kBytesMin, most)), bytes_(std::min(first, most)) {}

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // A portion of `written` bytes was durable after `took`.
  void written(std::uint64_t written, Duration took) {
    if (took > kTimeMax) {
      bytes_ = std::max(bytes_ / 2, least_);
    } else if (took < kTimeMin && written >= bytes_) {
      bytes_ = std::min(bytes_ * 2, most_);
    }
  }

 private:
  std::uint64_t most_;
  std::uint64_t least_;
  std::uint64_t bytes_;
};

}  // namespace mariner::volume
