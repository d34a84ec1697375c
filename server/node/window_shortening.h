// By how much windows count for less while a full log looks for what it can give up.
//
// It is found try by try, more with each that does not do. Who uses more than an equal share of the
// log gives up an eighth of its window with each, so that it does not come to that again soon; who
// does not, no more than it must: a 64th, and then twice as much each time.
//
// A value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "proto/units.h"

namespace mariner::node {

class WindowShortening {
 public:
  static constexpr std::uint64_t kWhole = 64;
  static constexpr std::uint64_t kGreedyStep = kWhole / 8;

  // More of the volume's window goes. False: all of it has gone.
  bool shorten(VolumeId volume, bool greedy) {
    std::uint64_t& gone = gone_[volume];
    if (gone == kWhole) return false;
    gone = std::min(kWhole, greedy ? gone + kGreedyStep : std::max<std::uint64_t>(1, gone * 2));
    return true;
  }
  [[nodiscard]] bool shortened(VolumeId volume) const { return gone_.contains(volume); }
  // What is left of a window of so many nanoseconds.
  [[nodiscard]] std::uint64_t left_of(VolumeId volume, std::uint64_t window_ns) const {
    const auto found = gone_.find(volume);
    return found == gone_.end() ? window_ns : window_ns / kWhole * (kWhole - found->second);
  }
  void clear() { gone_.clear(); }

 private:
  std::map<VolumeId, std::uint64_t> gone_;  // of kWhole
};

}  // namespace mariner::node
