// A tree of versions of aligned runs of blocks (run_key.h), as the LT index and the index of what
// was kept are: key {run, number}, the higher the number the newer.
//
// Owner's thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "index/btree.h"
#include "index/run_key.h"
#include "proto/units.h"

namespace mariner::index {

// Which levels of runs larger than a segment have entries in a tree of runs: few do.
class LargeLevels {
 public:
  // A computation: see BlockReader.
  void learn(BTree& tree, BlockReader& reader);
  void add(unsigned level) {
    if (level > kSegmentLevel) levels_ |= 1u << level;
  }
  [[nodiscard]] bool has(unsigned level) const { return (levels_ >> level & 1) != 0; }
  [[nodiscard]] bool none() const { return levels_ == 0; }

 private:
  std::uint32_t levels_ = 0;  // as bits
};

// Calls use(segments, part) for the segments in which `ranges` have blocks, in order; `part` are
// those that do. Segments that lie whole in one range come at once. The ranges ascend, are not
// empty and do not overlap.
template <typename Use>
void by_segment(std::span<const BlockRange> ranges, Use use) {
  Lbn next{0};  // behind the segments that were used
  for (auto first = ranges.begin(); first != ranges.end();) {
    const Lbn from = std::max(first->first, next);
    if (from >= first->end()) {
      ++first;
      continue;
    }
    BlockRange segments = AlignedRun::containing(from.value, kSegmentLevel).blocks();
    auto last = std::next(first);
    if (from == segments.first && first->end() >= segments.end()) {
      segments.count.value = (first->end() - from).value >> kSegmentBits << kSegmentBits;
    } else {
      while (last != ranges.end() && last->first < segments.end()) ++last;
    }
    use(segments, std::span(first, last));
    next = segments.end();
  }
}

// Where in a tree of runs the versions with numbers in [low, high] are that have blocks of `ranges`
// (as above): ranges of keys that ascend and have gaps between them. They may hold others, too:
// where much of a segment is asked for they have all of it.
[[nodiscard]] std::vector<KeyRange> keys_of_runs(std::span<const BlockRange> ranges,
                                                 const LargeLevels& levels, std::uint64_t low,
                                                 std::uint64_t high);

// Shows those versions: use(key, value, part, skipped) for the part of each run that lies in one of
// the ranges, so many blocks behind the run's first one. A computation: see BlockReader.
template <typename Use>
void walk_runs(const BTree& tree, BlockReader& reader, std::span<const BlockRange> ranges,
               const LargeLevels& levels, std::uint64_t low, std::uint64_t high, Use use) {
  tree.walk_each(reader, keys_of_runs(ranges, levels, low, high),
                 [&](IndexKey key, BTree::Value value) {
                   if (key.low < low || key.low > high) return;
                   const BlockRange run = AlignedRun::of_key(key.high).blocks();
                   auto range = std::ranges::upper_bound(ranges, run.first, {}, &BlockRange::end);
                   for (; range != ranges.end() && range->first < run.end(); ++range) {
                     const BlockRange part = run.intersect(*range);
                     use(key, value, part, (part.first - run.first).value);
                   }
                 });
}

}  // namespace mariner::index
