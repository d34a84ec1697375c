// When which number was settled, roughly: how long a replica has been behind.
//
// A bounded number of samples: the longer ago, the coarser. Owner's thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "proto/units.h"

namespace mariner::replication {

class SettledTimes {
 public:
  static constexpr std::size_t kSamplesMax = 512;

  // Everything at or below `settled` is, now. Numbers and times never go back.
  void note(SequenceNumber settled, std::chrono::nanoseconds now);
  // How long something above `sequence` has been settled; zero: nothing is. As exact as it was
  // noted, or a tenth less.
  [[nodiscard]] std::chrono::nanoseconds behind(SequenceNumber sequence,
                                                std::chrono::nanoseconds now) const;

 private:
  struct Sample {
    SequenceNumber settled;
    std::chrono::nanoseconds time;
  };
  void thin_out(std::chrono::nanoseconds now);

  std::vector<Sample> samples_;  // both ascend
};

}  // namespace mariner::replication
