// Which records of the log are settled: the lowest ordinal of which that is not known yet.
//
// Ordinals are given in order and settle in any: durable, or given up.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/check.h"

namespace mariner::logging {

class OrdinalFrontier {
 public:
  explicit OrdinalFrontier(std::uint64_t next) : first_(next) {}

  // The next ordinal.
  std::uint64_t give() {
    settled_.push_back(false);
    return first_ + settled_.size() - 1;
  }
  // Once for each that was given.
  void settle(std::uint64_t ordinal) {
    CHECK(ordinal >= first_ && ordinal - first_ < settled_.size());
    bool& settled = settled_[ordinal - first_];
    CHECK(!settled);
    settled = true;
    while (!settled_.empty() && settled_.front()) {
      settled_.pop_front();
      ++first_;
    }
  }
  // Every ordinal below it is settled.
  [[nodiscard]] std::uint64_t value() const { return first_; }

 private:
  std::uint64_t first_;
  std::deque<bool> settled_;  // from first_ on; bounded by the records in flight
};

}  // namespace mariner::logging
