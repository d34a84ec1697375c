#include "server/node/patience.h"

#include <algorithm>
#include <span>
#include <utility>

namespace mariner::node {
namespace {

// By such a part it is to be faster: it costs some of a processor.
constexpr int kWorthIt = 10;

Patience::Time median(std::span<Patience::Time> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

void Patience::batch_done(std::uint32_t records, std::uint32_t bytes, Time duration) {
  waits_ = false;
  lone_ = records <= kLoneRecordsMax && bytes <= kLoneBytesMax;
  if (!polls_ || !lone_) return;
  expect(duration);
  if (!trying_) {
    if (++batches_ < kKeptBatches) return;
    trying_ = true;
    batches_ = 0;
    return;
  }
  if (turn_of_looking()) {
    awake_[awake_count_++] = duration;
  } else {
    asleep_[asleep_count_++] = duration;
  }
  if (++batches_ == kTrialBatches) decide();
}

void Patience::decide() {
  const Time asleep = median(asleep_);
  const Time awake = median(awake_);
  pays_ = awake + awake / kWorthIt < asleep;
  trying_ = false;
  batches_ = 0;
  asleep_count_ = 0;
  awake_count_ = 0;
}

// Half of the batches take longer than what is expected, half less: up and down by the same steps.
void Patience::expect(Time duration) {
  if (expected_ == Time{0}) expected_ = duration;
  const Time step = expected_ / 16;
  expected_ += duration > expected_ ? step : -step;
}

bool Patience::looks() const {
  if (!polls_ || !lone_ || expected_ > kLongest) return false;
  return trying_ ? turn_of_looking() : pays_;
}

Outlook Patience::outlook(Time now, bool under_way) {
  if (!under_way) waits_ = false;
  if (!under_way || !looks()) return {under_way};
  if (!std::exchange(waits_, true)) since_ = now;
  return {true, since_ + expected_ / 2, since_ + 2 * expected_};
}

}  // namespace mariner::node
