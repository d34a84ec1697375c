// What is pending for leaves, sorted: a question about many moments looks at the same leaves again
// and again, in one turn and in several.
//
// Sorting all of a leaf costs as much as some looks at it: from then on it is kept, until it is
// committed; up to a bound, for all trees of a store together. What comes is sorted by itself, and
// merged into that when it has become a good part of it. Owner's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "index/index_block.h"
#include "index/leaf.h"
#include "index/modification_queue.h"

namespace mariner::index {

class SortedPending {
 public:
  static constexpr unsigned kLooksFew = 2;
  // What has come since all was sorted: so many records, or this part of them, before it is again.
  static constexpr std::size_t kRecentMax = 64;
  static constexpr std::size_t kRecentPart = 8;
  static constexpr std::size_t kRecordsMax = 1u << 20;  // that are kept, of all leaves: 24 MiB
  static constexpr std::size_t kLeavesMax = 4096;       // of which anything is known

  // In a range: the last of each key, by key. Good in this turn, as long as nothing comes or is
  // committed.
  struct Part {
    std::vector<PendingRecord> own;
    std::shared_ptr<const std::vector<PendingRecord>> all;
    std::span<const PendingRecord> records;  // of the one or the other
  };
  // Of the leaf that stands at `address`, in [low, high].
  [[nodiscard]] Part look(BlockAddress address, const PendingModifications& pending, IndexKey low,
                          IndexKey high);

  [[nodiscard]] std::size_t records_kept() const { return records_; }

 private:
  struct Leaf {
    BlockAddress address;
    PendingModifications::Stamp stamp;  // of the last look
    unsigned looks = 0;
    std::shared_ptr<const std::vector<PendingRecord>> records;  // null: not yet
    std::vector<PendingRecord> recent;                          // what came since, sorted
    [[nodiscard]] std::size_t count() const {
      return records == nullptr ? 0 : records->size() + recent.size();
    }
  };
  Leaf& leaf_at(BlockAddress address, const PendingModifications& pending);
  void keep(Leaf& leaf, std::vector<PendingRecord> records);
  void forget_last();
  // Forgets what was not looked at for long, until the bound holds.
  void keep_bound(const Leaf& but);
  void bring_up_to_date(Leaf& leaf, const PendingModifications& pending);
  void empty(Leaf& leaf);

  std::list<Leaf> leaves_;  // the last one that was looked at is in front
  std::unordered_map<std::uint32_t, std::list<Leaf>::iterator> places_;
  std::size_t records_ = 0;
};

}  // namespace mariner::index
