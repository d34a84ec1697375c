#include "proto/backoff.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner {

Backoff::Backoff(BackoffTimes times) : times_(times), time_(times.least), random_(times.seed) {
  CHECK(times.least.count() > 0 && times.least <= times.most);
}

std::chrono::nanoseconds Backoff::next() {
  const std::chrono::nanoseconds whole = time_;
  time_ = std::min(times_.most, 2 * time_);
  // A linear congruential generator (Knuth, The Art of Computer Programming 3.3.4): even jitter is
  // all that is asked of it.
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  const auto share = static_cast<std::int64_t>(random_ >> 44);  // of 2^20
  return whole / 2 + std::chrono::nanoseconds(((whole.count() / 2) >> 20) * share);
}

}  // namespace mariner
