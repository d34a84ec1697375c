#include "index/sorted_pending.h"

#include <algorithm>
#include <iterator>

namespace mariner::index {

void SortedPending::empty(Leaf& leaf) {
  if (leaf.records != nullptr) records_ -= leaf.records->size();
  leaf.records = nullptr;
}

SortedPending::Leaf& SortedPending::leaf_at(BlockAddress address,
                                            const PendingModifications& pending) {
  const PendingModifications::Stamp stamp = pending.stamp();
  const auto place = places_.find(address.value);
  if (place == places_.end()) {
    leaves_.push_front({.address = address, .stamp = stamp, .looks = 0, .records = nullptr});
    places_[address.value] = leaves_.begin();
    if (leaves_.size() > kLeavesMax) {
      empty(leaves_.back());
      places_.erase(leaves_.back().address.value);
      leaves_.pop_back();
    }
    return leaves_.front();
  }
  leaves_.splice(leaves_.begin(), leaves_, place->second);
  Leaf& leaf = leaves_.front();
  if (!pending.extends(leaf.stamp)) {
    empty(leaf);
    leaf.looks = 0;
    leaf.stamp = stamp;
  }
  // Otherwise `stamp` tells how far it is sorted, if it is.
  if (leaf.records == nullptr) leaf.stamp = stamp;
  return leaf;
}

void SortedPending::keep(Leaf& leaf, std::vector<PendingRecord> records) {
  empty(leaf);
  leaf.records = std::make_shared<const std::vector<PendingRecord>>(std::move(records));
  records_ += leaf.records->size();
  for (auto each = leaves_.rbegin(); records_ > kRecordsMax && &*each != &leaf; ++each) {
    empty(*each);
  }
}

// Of one key what came last.
void SortedPending::bring_up_to_date(Leaf& leaf, const PendingModifications& pending) {
  if (pending.count() == leaf.stamp.count()) return;
  const std::vector<PendingRecord>& old = *leaf.records;
  const std::vector<PendingRecord> come =
      sorted_pending(pending, {}, IndexKey::max(), leaf.stamp.count());
  std::vector<PendingRecord> all;
  all.reserve(old.size() + come.size());
  auto from = old.begin();
  for (const PendingRecord& each : come) {
    const auto until = std::ranges::lower_bound(from, old.end(), each.key, {}, &PendingRecord::key);
    all.insert(all.end(), from, until);
    all.push_back(each);
    from = until != old.end() && until->key == each.key ? std::next(until) : until;
  }
  all.insert(all.end(), from, old.end());
  leaf.stamp = pending.stamp();
  keep(leaf, std::move(all));
}

SortedPending::Part SortedPending::look(BlockAddress address, const PendingModifications& pending,
                                        IndexKey low, IndexKey high) {
  Part part;
  if (pending.empty()) return part;
  Leaf& leaf = leaf_at(address, pending);
  if (leaf.records == nullptr && leaf.looks++ < kLooksFew) {
    part.own = sorted_pending(pending, low, high);
    part.records = part.own;
    return part;
  }
  if (leaf.records == nullptr) {
    keep(leaf, sorted_pending(pending, {}, IndexKey::max()));
  } else {
    bring_up_to_date(leaf, pending);
  }
  part.all = leaf.records;
  const std::span<const PendingRecord> all(*part.all);
  const auto from = std::ranges::lower_bound(all, low, {}, &PendingRecord::key);
  part.records = {from, std::ranges::upper_bound(from, all.end(), high, {}, &PendingRecord::key)};
  return part;
}

}  // namespace mariner::index
