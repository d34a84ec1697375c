// The settled frontier: the highest sequence number below which, itself included, every number is
// settled (durable or void). Numbers settle in any order, one by one or millions at once; the
// frontier moves without gaps.
#pragma once

#include "proto/check.h"
#include "proto/units.h"
#include "replication/number_ranges.h"

namespace mariner::replication {

class SettledFrontier {
 public:
  explicit SettledFrontier(SequenceNumber settled) : frontier_(settled) {}

  [[nodiscard]] SequenceNumber value() const { return frontier_; }

  // The numbers are above the frontier and were not settled before. Returns whether the frontier
  // moved.
  bool settle(SequenceNumber sequence) { return settle({sequence, sequence}); }
  bool settle(SequenceRange numbers) {
    CHECK(numbers.first > frontier_ && numbers.last >= numbers.first);
    if (numbers.first != frontier_.next()) {
      above_.add(numbers);
      return false;
    }
    if (!above_.empty()) {
      CHECK(!above_.intersects(numbers));
      numbers.last = above_.take(numbers.last.next()).value_or(numbers.last);
    }
    frontier_ = numbers.last;
    return true;
  }

 private:
  SequenceNumber frontier_;
  NumberRanges above_;  // without frontier_ + 1; bounded by the writes in flight
};

}  // namespace mariner::replication
