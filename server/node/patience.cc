#include "server/node/patience.h"

#include <algorithm>
#include <span>

namespace mariner::node {
namespace {

Patience::Time median(std::span<Patience::Time> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

void Patience::batch_done(std::uint32_t records, Time duration) {
  lone_ = records <= kLoneRecordsMax;
  if (!polls_ || !lone_) return;
  if (!trying_) {
    if (++batches_ < kKeptBatches) return;
    trying_ = true;
    batches_ = 0;
    return;
  }
  if (looks()) {
    awake_[awake_count_++] = duration;
  } else {
    asleep_[asleep_count_++] = duration;
  }
  if (++batches_ == kTrialBatches) decide();
}

void Patience::decide() {
  const Time asleep = median(asleep_);
  const Time awake = median(awake_);
  // By a tenth at least: it costs a processor.
  patience_ = awake + awake / 10 < asleep ? std::min(4 * awake, kLongest) : Time{0};
  trying_ = false;
  batches_ = 0;
  asleep_count_ = 0;
  awake_count_ = 0;
}

Patience::Time Patience::value() const {
  if (!polls_ || !lone_) return Time{0};
  if (trying_) return looks() ? kLongest : Time{0};
  return patience_;
}

}  // namespace mariner::node
