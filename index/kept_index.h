// The index of what kept moments show (FORMAT.md section 7): versions of blocks that the log has
// written again, because a moment older than the horizon that can still be opened shows them.
//
// An entry is a version of an aligned run of blocks (run_key.h): key {run, ordinal of its record},
// value its place and the moments, first and last, that show it. Of a block's entries for one
// moment the one with the highest ordinal counts. Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/btree.h"
#include "index/lt_index.h"
#include "index/run_key.h"
#include "proto/units.h"

namespace mariner::index {

struct KeptRun {
  BlockRange range;
  SequenceNumber from;     // shown at the kept moments [from, through]
  SequenceNumber through;  // inclusive
  std::uint64_t ordinal = 0;
  PlacedRun place;  // of the range's first block; kZero or kLog
  friend bool operator==(const KeptRun&, const KeptRun&) = default;
};

class KeptIndex {
 public:
  static BTreeOptions tree_options(FunctionId id, const RecordFilter* filter);

  // `tree` outlives it.
  explicit KeptIndex(BTree& tree) : tree_(tree) {}

  // Learns from the tree what it holds: once, before any lookup. A computation.
  void learn(BlockReader& reader) { levels_.learn(tree_, reader); }

  void insert(const KeptRun& run);
  // Of a leaf that is made again: those parts whose keys are in `range`.
  void restore(const KeptRun& run, KeyRange range);
  // Calls use(IndexKey) for each entry that `run` makes.
  template <typename Use>
  static void for_each_key(const KeptRun& run, Use use) {
    cut_extent(run.range, [&](AlignedRun each) { use(IndexKey{each.key(), run.ordinal}); });
  }

  // Entries of blocks of `ranges` (which ascend, are not empty and do not overlap) with ordinals
  // above `after`, by ordinal: each of one run's part of one of them. A computation.
  [[nodiscard]] std::vector<KeptRun> all(BlockReader& reader, std::span<const BlockRange> ranges,
                                         std::uint64_t after) const;
  // The extents of all entries above `after` that one of the moments shows, merged. Reads the whole
  // index, in several turns where that is long; what is inserted meanwhile is among them, because
  // it may take the place of what has not been read yet.
  void shown_at(std::vector<SequenceNumber> moments, std::uint64_t after,
                UniqueFunction<void(Result<std::vector<BlockRange>>)> done);
  [[nodiscard]] bool empty() const { return tree_.effective_count() == 0; }

 private:
  struct Search;

  BTree& tree_;
  LargeLevels levels_;
  std::vector<std::shared_ptr<Search>> searches_;  // under way
};

}  // namespace mariner::index
