// A limit on bytes a second for what may wait: what is taken is moved when its time has come.
//
// Who was idle may move kBurstTime's worth at once. Sans I/O: times are arguments. Owner's thread
// only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mariner::volume {

class Throttle {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kBurstTime = std::chrono::milliseconds(100);

  // 0: no limit.
  explicit Throttle(std::uint64_t bytes_per_second) : rate_(bytes_per_second) {}

  // For what is taken from now on; what was moved before is forgotten.
  void set(std::uint64_t bytes_per_second) {
    rate_ = bytes_per_second;
    free_at_ = {};
  }

  // How long to wait before `bytes` are moved; they count from now on. `now` never goes back.
  [[nodiscard]] Duration take(std::uint64_t bytes, Duration now) {
    if (rate_ == 0) return Duration{0};
    free_at_ = std::max(free_at_, now - kBurstTime);
    const Duration wait = std::max(Duration{0}, free_at_ - now);
    const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
    free_at_ += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    return wait;
  }

 private:
  std::uint64_t rate_;
  Duration free_at_{0};  // when all that was taken has been moved, at that rate
};

}  // namespace mariner::volume
