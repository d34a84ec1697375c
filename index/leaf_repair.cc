#include "index/leaf_repair.h"

#include <algorithm>

#include "index/record_entries.h"
#include "index/tl_index.h"

namespace mariner::index {

RepairFilter::RepairFilter(std::span<const LeafRepair> repairs) {
  for (const LeafRepair& repair : repairs) {
    ranges_[repair.volume][static_cast<std::size_t>(repair.tree)].push_back(repair.range);
  }
  for (auto& [volume, trees] : ranges_) {
    for (Ranges& ranges : trees) std::ranges::sort(ranges, {}, &KeyRange::low);
  }
}

bool RepairFilter::any_in(const Ranges& ranges, IndexKey key) {
  const auto behind = std::ranges::upper_bound(ranges, key, {}, &KeyRange::low);
  return behind != ranges.begin() && std::prev(behind)->contains(key);
}

bool RepairFilter::any_of_batch_in(const Ranges& ranges) {
  const bool any = std::ranges::any_of(batch_.entries(), [&](const LtIndex::Batch::Entry& entry) {
    return any_in(ranges, entry.key);
  });
  batch_.clear();
  return any;
}

bool RepairFilter::concerns(const logging::Record& record) {
  const auto found = ranges_.find(record.volume);
  if (found == ranges_.end()) return false;
  const auto& [by_time, by_block, bases, kept] = found->second;
  if (is_for_kept_moments(record)) {
    bool any = false;
    KeptIndex::for_each_key(kept_run_of(record, {}),
                            [&](IndexKey key) { any = any || any_in(kept, key); });
    return any;
  }
  if (has_base(record)) {
    if (bases.empty()) return false;
    add_base(record, {}, batch_);
    return any_of_batch_in(bases);
  }
  if (!has_versions(record)) return false;
  if (any_in(by_time, TlIndex::key_of(record))) return true;
  if (by_block.empty()) return false;
  add_versions(record, {}, batch_);
  return any_of_batch_in(by_block);
}

}  // namespace mariner::index
