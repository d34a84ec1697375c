// The answer to what the same blocks held at one moment, and to what their base is, walked
// together.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "server/volume/history.h"

namespace mariner::cluster {

// What to ask for it with locate_all(), which answers all of it.
inline std::vector<volume::History::Lookup> ask_both(BlockRange range, SequenceNumber at) {
  return {{range, at}, {range, SequenceNumber{0}}};
}

// The parts of `range` where `wanted`(the run as of the moment, the run of the base), in order;
// neighbours are one.
template <typename Wanted>
std::vector<BlockRange> select_both(std::span<const volume::PastRun> found, BlockRange range,
                                    Wanted wanted) {
  std::vector<BlockRange> out;
  auto then = found.begin();
  auto base = std::find_if(then + 1, found.end(), [range](const volume::PastRun& run) {
    return run.range.first == range.first;
  });
  for (Lbn at = range.first; at < range.end();) {
    const Lbn end = std::min(then->range.end(), base->range.end());
    if (wanted(*then, *base)) {
      if (out.empty() || out.back().end() != at) out.push_back({at, {0}});
      out.back().count = end - out.back().first;
    }
    if (then->range.end() == end) ++then;
    if (base->range.end() == end) ++base;
    at = end;
  }
  return out;
}

}  // namespace mariner::cluster
