// The settled frontier: the highest sequence number below which, itself included, every number is
// settled (durable or void). Numbers settle in any order; the frontier moves without gaps.
#pragma once

#include <deque>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner::replication {

class SettledFrontier {
 public:
  explicit SettledFrontier(SequenceNumber settled) : frontier_(settled) {}

  [[nodiscard]] SequenceNumber value() const { return frontier_; }

  // `sequence` is above the frontier and was not settled before. Returns whether the frontier
  // moved.
  bool settle(SequenceNumber sequence) {
    CHECK(sequence > frontier_);
    const std::uint64_t index = sequence.value - frontier_.value - 1;
    if (index >= above_.size()) above_.resize(index + 1, false);
    CHECK(!above_[index]);
    above_[index] = true;
    const SequenceNumber before = frontier_;
    while (!above_.empty() && above_.front()) {
      above_.pop_front();
      frontier_ = frontier_.next();
    }
    return frontier_ != before;
  }

 private:
  SequenceNumber frontier_;
  std::deque<bool> above_;  // [0] is frontier_ + 1; bounded by the writes in flight
};

}  // namespace mariner::replication
