// Blocks of a file system, as ranges.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"

namespace mariner::ifsck {

class BlockRanges {
 public:
  struct Range {
    FsBlock first = 0;
    FsBlock end = 0;
    friend auto operator<=>(const Range&, const Range&) = default;
  };

  BlockRanges() = default;
  // In any order; they may overlap, and be empty.
  explicit BlockRanges(std::vector<Range> ranges) {
    std::ranges::sort(ranges);
    for (const Range& each : ranges) {
      if (each.first >= each.end) continue;
      if (!ranges_.empty() && each.first <= ranges_.back().end) {
        ranges_.back().end = std::max(ranges_.back().end, each.end);
      } else {
        ranges_.push_back(each);
      }
    }
  }

  [[nodiscard]] bool contains(FsBlock block) const {
    const auto after = std::ranges::upper_bound(ranges_, block, {}, &Range::first);
    return after != ranges_.begin() && block < std::prev(after)->end;
  }
  // One of [first, end), or several.
  [[nodiscard]] bool overlaps(FsBlock first, FsBlock end) const {
    const auto after = std::ranges::lower_bound(ranges_, end, {}, &Range::first);
    return after != ranges_.begin() && first < std::prev(after)->end;
  }
  // Ascending, with gaps between them.
  [[nodiscard]] auto begin() const { return ranges_.begin(); }
  [[nodiscard]] auto end() const { return ranges_.end(); }

 private:
  std::vector<Range> ranges_;
};

}  // namespace mariner::ifsck
