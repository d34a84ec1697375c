// How much of a volume's writes may be let in by when, at a rate that may change.
//
// What is granted grows with time, not with writes: so a write costs nothing, and those that wait
// go on evenly. Who was below the rate may catch up with kCreditTime of it.
//
// Invariant: over any time, what was let in is what the rate gave, at most kCreditTime of it, and
// one write. Sans I/O: times are arguments. Owner's thread only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "replication/write_coordinator.h"

namespace mariner::volume {

class WritePace {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kCreditTime = std::chrono::seconds(1);
  static constexpr std::uint64_t kUnlimited = replication::WriteCoordinator::kUnlimited;

  // From now on; none: whatever comes. `stamped_bytes` were let in, ever. `now` never goes back.
  void set(std::optional<double> bytes_per_second, std::uint64_t stamped_bytes, Duration now) {
    if (!rate_) {
      granted_ = static_cast<double>(stamped_bytes);
      at_ = now;
    }
    grant(stamped_bytes, now);
    rate_ = bytes_per_second;
  }

  // What writes may add up to by now. It falls only when the rate is taken away or set.
  std::uint64_t grant(std::uint64_t stamped_bytes, Duration now) {
    if (!rate_) return kUnlimited;
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    granted_ += *rate_ * seconds(now - at_);
    at_ = now;
    granted_ =
        std::min(granted_, static_cast<double>(stamped_bytes) + *rate_ * seconds(kCreditTime));
    return static_cast<std::uint64_t>(granted_);
  }

  [[nodiscard]] std::optional<double> rate() const { return rate_; }

 private:
  std::optional<double> rate_;  // bytes a second
  double granted_ = 0;
  Duration at_{0};  // it is as of then
};

}  // namespace mariner::volume
