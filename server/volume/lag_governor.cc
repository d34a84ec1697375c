#include "server/volume/lag_governor.h"

#include <algorithm>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner::volume {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kWindowSeconds = 2;   // that the measured rate remembers
constexpr double kRateMin = 1u << 16;  // bytes a second: no pace stands still
constexpr std::uint64_t kPortionBytesFirst = 8u << 20;

// The pace as a multiple of the image's rate. Equal to it at three quarters of the target.
constexpr double kUnpacedShare = 0.25;  // of the target: below it nobody is slowed
constexpr double kFast = 2;             // there
constexpr double kSlow = 0.5;           // at the target and above
constexpr double kCaughtUpShare = 0.125;

}  // namespace

LagGovernor::LagGovernor(const Options& options)
    : lag_bytes_max_(options.lag_bytes_max),
      target_bytes_(std::min(options.memory_bytes_max, options.lag_bytes_max / 2)),
      portion_(kPortionBytesFirst,
               std::min(options.portion_bytes_max,
                        std::max(kPortionBytesFirst,
                                 std::min(options.memory_bytes_max, options.lag_bytes_max) / 8))) {
  CHECK(options.portion_bytes_max >= kBlockBytes);
}

void LagGovernor::bound_lag(std::uint64_t lag_bytes_max, std::uint64_t memory_bytes_max) {
  lag_bytes_max_ = lag_bytes_max;
  target_bytes_ = std::min(memory_bytes_max, lag_bytes_max / 2);
}

void LagGovernor::written(const Portion& portion) {
  fetched(portion);
  portion_.written(portion.image_bytes, portion.took);
}

void LagGovernor::fetched(const Portion& portion) {
  measured_bytes_ += static_cast<double>(portion.lag_bytes);
  measured_seconds_ += Seconds(portion.took).count();
  if (measured_seconds_ > kWindowSeconds) {
    measured_bytes_ *= kWindowSeconds / measured_seconds_;
    measured_seconds_ = kWindowSeconds;
  }
}

double LagGovernor::pace(std::uint64_t lag_bytes) const {
  if (!sustained_ || measured_seconds_ <= 0) return 0;
  const double rate = std::max(measured_bytes_ / measured_seconds_, kRateMin);
  const auto target = static_cast<double>(target_bytes_);
  const auto lag = static_cast<double>(lag_bytes);
  if (lag >= target) return rate * kSlow;
  if (lag < target * kUnpacedShare) return 0;
  const double fullness = (lag / target - kUnpacedShare) / (1 - kUnpacedShare);
  return rate * (kFast + (kSlow - kFast) * fullness);
}

std::uint64_t LagGovernor::room(std::uint64_t lag_bytes, Duration now) {
  CHECK(now >= credited_);
  const auto lag = static_cast<double>(lag_bytes);
  if (lag >= static_cast<double>(lag_bytes_max_) * kBurstShare) {
    sustained_ = true;
  } else if (lag <= static_cast<double>(target_bytes_) * kCaughtUpShare) {
    sustained_ = false;
  }
  const double pace_now = pace(lag_bytes);
  const double earned = pace_now * Seconds(now - credited_).count();
  credited_ = now;
  wait_ = {};
  const std::uint64_t most = lag_bytes < lag_bytes_max_ ? lag_bytes_max_ - lag_bytes : 0;
  if (pace_now == 0) {
    credit_ = 0;
    return most;
  }
  credit_ = std::min(credit_ + earned, pace_now * Seconds(kCreditTime).count());
  if (most == 0) return 0;
  if (credit_ >= 1) return std::min(most, static_cast<std::uint64_t>(credit_));
  const auto until = std::chrono::duration_cast<Duration>(Seconds((1 - credit_) / pace_now));
  wait_ = std::max<Duration>(until + std::chrono::microseconds(1), kWaitMin);  // rounded up
  return 0;
}

}  // namespace mariner::volume
