// Lists of ranges of blocks: what is different between moments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ifsck/overlay.h"
#include "proto/units.h"

namespace mariner::ifsck {

inline void add_overlay(const Overlay& overlay, std::vector<BlockRange>& to) {
  overlay.for_each([&](Lbn lbn, const Overlay::Block&) { to.push_back({lbn, BlockCount{1}}); });
}

// Ascending from then on, with gaps between them.
inline void normalize(std::vector<BlockRange>& ranges) {
  std::ranges::sort(ranges);
  std::vector<BlockRange> merged;
  for (const BlockRange& each : ranges) {
    if (!merged.empty() && each.first <= merged.back().end()) {
      merged.back() =
          BlockRange::between(merged.back().first, std::max(merged.back().end(), each.end()));
    } else {
      merged.push_back(each);
    }
  }
  ranges = std::move(merged);
}

[[nodiscard]] inline std::uint64_t count_blocks(const std::vector<BlockRange>& ranges) {
  std::uint64_t blocks = 0;
  for (const BlockRange& each : ranges) blocks += each.count.value;
  return blocks;
}

// Calls `visit(lbn)` for each block.
template <typename Visit>
void for_each_block(const std::vector<BlockRange>& ranges, Visit visit) {
  for (const BlockRange& range : ranges) {
    for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) visit(lbn);
  }
}

}  // namespace mariner::ifsck
