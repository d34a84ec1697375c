#include "replication/settled_times.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::replication {
namespace {

constexpr int kCoarseness = 10;  // of two samples' distance to their age

}  // namespace

void SettledTimes::note(SequenceNumber settled, std::chrono::nanoseconds now) {
  if (!samples_.empty()) {
    CHECK(settled >= samples_.back().settled && now >= samples_.back().time);
    if (settled == samples_.back().settled) return;
  }
  if (samples_.size() == kSamplesMax) thin_out(now);
  samples_.push_back({settled, now});
}

// What is between two that are close to each other for their age goes: what remains is spaced by
// its age, so that a few hundred samples reach back for years.
void SettledTimes::thin_out(std::chrono::nanoseconds now) {
  std::size_t kept = 1;
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    const bool last = i + 1 == samples_.size();
    if (!last && samples_[i + 1].time - samples_[kept - 1].time <=
                     (now - samples_[i + 1].time) / kCoarseness) {
      continue;
    }
    samples_[kept++] = samples_[i];
  }
  samples_.resize(kept);
  if (kept == kSamplesMax) samples_.erase(samples_.begin());
}

std::chrono::nanoseconds SettledTimes::behind(SequenceNumber sequence,
                                              std::chrono::nanoseconds now) const {
  const auto first = std::ranges::upper_bound(samples_, sequence, {}, &Sample::settled);
  return first == samples_.end() ? std::chrono::nanoseconds(0) : now - first->time;
}

}  // namespace mariner::replication
