// The LT index of one volume: ordered by (LBN, time), where is the newest version of a block at or
// before a moment (design.md section 2). A moment is a sequence number.
//
// An entry is a version of an aligned run of blocks (run_key.h): key {run, sequence}, value its
// place. Owner's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "index/btree.h"
#include "index/run_tree.h"
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
  // one run's part of one of them. A computation.
  [[nodiscard]] std::vector<RunVersion> all(BlockReader& reader, std::span<const BlockRange> ranges,
                                            Moments moments) const;
  [[nodiscard]] bool empty() const { return tree_.effective_count() == 0; }

 private:
  void newest_of_part(BlockReader& reader, std::span<const BlockRange> ranges, Moments moments,
                      std::vector<RunVersion>& out) const;
  void newest_of_large(BlockReader& reader, BlockRange range, Moments moments,
                       std::vector<RunVersion>& out) const;

  BTree& tree_;
  LargeLevels levels_;
};

}  // namespace mariner::index
