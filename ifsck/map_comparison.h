// An inode's contents at two moments, by where they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ifsck/block_map.h"

namespace mariner::ifsck {

class MapComparison {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // [first, end)

  // Both maps outlive it. `left_out`: blocks of the file that are not told by what it has now; in
  // any order, and they may overlap.
  MapComparison(const BlockMap& now, const BlockMap& later, std::vector<Range> left_out = {})
      : now_(now), later_(later) {
    std::ranges::sort(left_out);
    for (const Range& each : left_out) {
      if (!left_out_.empty() && each.first <= left_out_.back().second) {
        left_out_.back().second = std::max(left_out_.back().second, each.second);
      } else {
        left_out_.push_back(each);
      }
    }
  }

  // No block of the file is at one place now and at another one later.
  [[nodiscard]] bool agree() const {
    bool agree = true;
    for_each_common([&](const BlockMap::Run& run, const BlockMap::Run& other, std::uint64_t) {
      agree = agree && run.physical - run.logical == other.physical - other.logical;
    });
    return agree;
  }
  // It has nothing later that it does not have now, and less than now.
  [[nodiscard]] bool shrinks() const {
    std::uint64_t common = 0;
    for_each_common(
        [&](const BlockMap::Run&, const BlockMap::Run&, std::uint64_t count) { common += count; });
    return common == contents(later_) && common < contents(now_);
  }

 private:
  static std::uint64_t contents(const BlockMap& map) {
    std::uint64_t all = 0;
    for (const BlockMap::Run& run : map.runs) all += run.count;
    return all;
  }

  // Runs ascend: each is passed once.
  template <typename Visit>
  void for_each_common(Visit visit) const {
    auto other = later_.runs.begin();
    for (const BlockMap::Run& run : now_.runs) {
      const std::uint64_t end = run.logical + run.count;
      while (other != later_.runs.end() && other->logical + other->count <= run.logical) ++other;
      for (auto each = other; each != later_.runs.end() && each->logical < end; ++each) {
        const std::uint64_t first = std::max(run.logical, each->logical);
        const std::uint64_t last = std::min(end, each->logical + each->count);
        const std::uint64_t told = told_of(first, last);
        if (told > 0) visit(run, *each, told);
      }
    }
  }
  // How many of [first, end) are not left out.
  [[nodiscard]] std::uint64_t told_of(std::uint64_t first, std::uint64_t end) const {
    std::uint64_t told = end - first;
    auto at = std::ranges::upper_bound(left_out_, first, {}, &Range::second);
    for (; at != left_out_.end() && at->first < end; ++at) {
      told -= std::min(end, at->second) - std::max(first, at->first);
    }
    return told;
  }

  const BlockMap& now_;
  const BlockMap& later_;
  std::vector<Range> left_out_;  // ascending, with gaps between them
};

}  // namespace mariner::ifsck
