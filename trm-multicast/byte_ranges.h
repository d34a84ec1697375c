// Which bytes of a payload are here: ranges that neither touch nor overlap. Datagrams come in order
// nearly always, so there is nearly always one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "proto/check.h"

namespace mariner::trm {

class ByteRanges {
 public:
  // Bytes [begin, end).
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };

  // Any overlap with what is in it is of no account.
  void add(Range range) {
    CHECK(range.begin < range.end);
    if (!ranges_.empty() && ranges_.back().end == range.begin) {  // the usual one
      ranges_.back().end = range.end;
      return;
    }
    const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &Range::end);
    auto last = first;
    while (last != ranges_.end() && last->begin <= range.end) {
      range.begin = std::min(range.begin, last->begin);
      range.end = std::max(range.end, last->end);
      ++last;
    }
    ranges_.insert(ranges_.erase(first, last), range);
  }

  [[nodiscard]] bool contains(Range range) const {
    const auto found = std::ranges::upper_bound(ranges_, range.begin, {}, &Range::end);
    return found != ranges_.end() && found->begin <= range.begin && found->end >= range.end;
  }
  [[nodiscard]] bool overlaps(Range range) const {
    const auto found = std::ranges::upper_bound(ranges_, range.begin, {}, &Range::end);
    return found != ranges_.end() && found->begin < range.end;
  }
  // What of `range` is not in it, ascending.
  [[nodiscard]] std::vector<Range> gaps(Range range) const {
    std::vector<Range> out;
    for (const Range& each : ranges_) {
      if (each.end <= range.begin) continue;
      if (each.begin >= range.end) break;
      if (each.begin > range.begin) out.push_back({range.begin, each.begin});
      range.begin = each.end;
    }
    if (range.begin < range.end) out.push_back(range);
    return out;
  }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] const std::vector<Range>& list() const { return ranges_; }

 private:
  std::vector<Range> ranges_;  // ascending
};

}  // namespace mariner::trm
