// Leaves of version indexes that were damaged, and are made again from the log.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "index/btree.h"
#include "index/lt_index.h"
#include "logging/record.h"

namespace mariner::index {

// One leaf: from StoredIndex::begin_repair() on it is empty, and fills from the log's records.
struct LeafRepair {
  enum class Tree : std::uint8_t { kTl, kLt, kBt, kKept };
  VolumeId volume;
  Tree tree = Tree::kTl;
  KeyRange range;  // of the tree's keys: what it has to hold
  // Records with higher ordinals come by themselves when they are durable.
  std::uint64_t through = 0;
};

// Which records of the log have entries in leaves that are made again: few, of many that are read.
// A value; any thread, one at a time.
class RepairFilter {
 public:
  explicit RepairFilter(std::span<const LeafRepair> repairs);

  [[nodiscard]] bool concerns(const logging::Record& record);

 private:
  using Ranges = std::vector<KeyRange>;  // in order

  [[nodiscard]] static bool any_in(const Ranges& ranges, IndexKey key);
  [[nodiscard]] bool any_of_batch_in(const Ranges& ranges);

  std::map<VolumeId, std::array<Ranges, 4>> ranges_;  // by LeafRepair::Tree
  LtIndex::Batch batch_;
};

}  // namespace mariner::index
