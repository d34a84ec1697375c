#include "server/node/patience.h"

#include <algorithm>

namespace mariner::node {

void Patience::batch_done(std::uint32_t records, Time duration) {
  lone_ = records <= kLoneRecordsMax;
  if (!polls_ || !lone_) return;
  spent_ += std::min(duration, batches_ > 0 ? 4 * spent_ / batches_ : kStall);
  ++batches_;
  if (batches_ == (phase_ == Phase::kKept ? kKeptBatches : kTrialBatches)) end_phase();
}

void Patience::end_phase() {
  const Time mean = spent_ / batches_;
  batches_ = 0;
  spent_ = Time{0};
  switch (phase_) {
    case Phase::kTrySleeping:
      asleep_ = mean;
      phase_ = Phase::kTryPolling;
      return;
    case Phase::kTryPolling:
      awake_ = mean;
      // By a tenth at least: it costs a processor.
      polling_pays_ = awake_ + awake_ / 10 < asleep_;
      phase_ = Phase::kKept;
      return;
    case Phase::kKept: phase_ = Phase::kTrySleeping; return;
  }
}

Patience::Time Patience::value() const {
  if (!polls_ || !lone_) return Time{0};
  switch (phase_) {
    case Phase::kTrySleeping: return Time{0};
    case Phase::kTryPolling: return kStall;
    case Phase::kKept: return polling_pays_ ? std::min(4 * awake_, kStall) : Time{0};
  }
  return Time{0};
}

}  // namespace mariner::node
