// The LT index of one volume: ordered by (LBN, time), where is the newest version of a block at or
// before a moment (design.md section 2). A moment is a sequence number.
//
// An entry is a version of an aligned run of blocks (run_key.h): key {run, sequence}, value its
// place. Owner's thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "index/btree.h"
#include "index/run_key.h"
#include "logging/log_location.h"
#include "proto/units.h"

namespace mariner::index {

// Where the bytes of a run are. FORMAT.md section 7.
struct PlacedRun {
  enum class Kind : std::uint8_t {
    kZero = 0,
    kLog = 1,
    kRepeated = 2,   // one payload block for all blocks
    kBase = 3,       // not here any more: what the volume is based on has it
    kReplacing = 4,  // of a before-image: as kLog, and earlier ones are void
  };
  Kind kind = Kind::kZero;
  logging::LogLocation location;
  std::uint32_t payload_block = 0;  // of the run's first block

  friend bool operator==(const PlacedRun&, const PlacedRun&) = default;
  // The same for what begins `blocks` blocks later.
  [[nodiscard]] PlacedRun advanced(std::uint64_t blocks) const {
    PlacedRun run = *this;
    if (kind == Kind::kLog || kind == Kind::kReplacing)
      run.payload_block += static_cast<std::uint32_t>(blocks);
    return run;
  }
};

inline constexpr std::size_t kPlacedRunBytes = 16;
void pack_placed_run(const PlacedRun& run, std::span<std::byte, kPlacedRunBytes> to);
[[nodiscard]] PlacedRun unpack_placed_run(std::span<const std::byte> from);

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

// Shows the entries of a tree of runs that have blocks of `ranges`, which ascend, are not empty and
// do not overlap: use(key, value, part, skipped) for the part of each run that lies in one of them,
// so many blocks behind the run's first one. A computation; looks at all that lies between them,
// too.
template <typename Use>
void walk_runs(const BTree& tree, BlockReader& reader, std::span<const BlockRange> ranges,
               const LargeLevels& levels, Use use) {
  const BlockRange hull = BlockRange::between(ranges.front().first, ranges.back().end());
  const auto use_parts = [&](IndexKey key, BTree::Value value) {
    const BlockRange run = AlignedRun::of_key(key.high).blocks();
    auto range = std::ranges::upper_bound(ranges, run.first, {}, &BlockRange::end);
    for (; range != ranges.end() && range->first < run.end(); ++range) {
      const BlockRange part = run.intersect(*range);
      use(key, value, part, (part.first - run.first).value);
    }
    return true;
  };
  const std::uint64_t first = hull.first.value >> kSegmentBits;
  const std::uint64_t last = (hull.end().value - 1) >> kSegmentBits;
  tree.walk(reader, {{first_key_of_segment(first), 0}, {last_key_of_segment(last), UINT64_MAX}},
            use_parts);
  for (unsigned level = kSegmentLevel + 1; level < kRunLevels; ++level) {
    if (!levels.has(level)) continue;
    const AlignedRun from = AlignedRun::containing(hull.first.value, level);
    const AlignedRun to = AlignedRun::containing(hull.end().value - 1, level);
    tree.walk(reader, {{from.key(), 0}, {to.key(), UINT64_MAX}}, use_parts);
  }
}

struct RunVersion {
  BlockRange range;
  SequenceNumber sequence;
  PlacedRun place;  // of the range's first block
  friend bool operator==(const RunVersion&, const RunVersion&) = default;
};

class LtIndex {
 public:
  // The options of its tree.
  static BTreeOptions tree_options(FunctionId id, const RecordFilter* filter = nullptr);

  // `tree` outlives it.
  explicit LtIndex(BTree& tree) : tree_(tree) {}

  // Learns from the tree what it holds: once, before any lookup, if the tree was loaded. A
  // computation: see BlockReader.
  void learn(BlockReader& reader) { levels_.learn(tree_, reader); }

  // A version of `range`, all of it in `place`. Versions of one block come in the order of their
  // sequence numbers. `number`: of the log record, as in Bosc::modify.
  void insert(BlockRange range, const PlacedRun& place, SequenceNumber sequence,
              std::uint64_t number);

  // The same for many at once.
  class Batch {
   public:
    struct Entry {
      IndexKey key;
      std::uint64_t number = 0;
      unsigned level = 0;  // of the run
      std::array<std::byte, kPlacedRunBytes> value{};
    };
    void add(BlockRange range, const PlacedRun& place, SequenceNumber sequence,
             std::uint64_t number);
    // What is no version of a run.
    void add(const Entry& entry) { entries_.push_back(entry); }
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
    void clear() { entries_.clear(); }

   private:
    std::vector<Entry> entries_;
  };
  // Empties the batch.
  void insert(Batch& batch);
  // Of a leaf that is made again: those of the batch whose keys are in `range` (BTree::restore).
  void restore(const Batch& batch, KeyRange range);

  struct Moments {
    SequenceNumber after;
    SequenceNumber at;  // inclusive
  };
  // The newest version within the moments of each block of `ranges` that has one: in order. The
  // ranges ascend, are not empty and do not overlap. A computation.
  [[nodiscard]] std::vector<RunVersion> newest(BlockReader& reader,
                                               std::span<const BlockRange> ranges,
                                               Moments moments) const;
  [[nodiscard]] std::vector<RunVersion> newest(BlockReader& reader, BlockRange range,
                                               Moments moments) const {
    return newest(reader, std::span(&range, range.empty() ? 0 : 1), moments);
  }
  // The versions of `block` within the moments, by sequence number, the first `most` of them; their
  // ranges are the block. A computation.
  [[nodiscard]] std::vector<RunVersion> versions(BlockReader& reader, Lbn block, Moments moments,
                                                 std::size_t most = SIZE_MAX) const;

  // All versions of blocks of `ranges` (as above) within the moments, by sequence number, each of
  // one run's part of one of them. A computation; looks at all that lies between them, too.
  [[nodiscard]] std::vector<RunVersion> all(BlockReader& reader, std::span<const BlockRange> ranges,
                                            Moments moments) const;
  [[nodiscard]] bool empty() const { return tree_.effective_count() == 0; }

 private:
  void newest_of_part(BlockReader& reader, std::span<const BlockRange> ranges, Moments moments,
                      std::vector<RunVersion>& out) const;

  BTree& tree_;
  LargeLevels levels_;
};

}  // namespace mariner::index
