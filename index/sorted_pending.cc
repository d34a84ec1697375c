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
  if (leaf.stamp != stamp) {
    empty(leaf);
    leaf.looks = 0;
    leaf.stamp = stamp;
  }
  return leaf;
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
    leaf.records = std::make_shared<const std::vector<PendingRecord>>(
        sorted_pending(pending, {}, IndexKey::max()));
    records_ += leaf.records->size();
    for (auto each = leaves_.rbegin(); records_ > kRecordsMax && &*each != &leaf; ++each) {
      empty(*each);
    }
  }
  part.all = leaf.records;
  const std::span<const PendingRecord> all(*part.all);
  const auto from = std::ranges::lower_bound(all, low, {}, &PendingRecord::key);
  part.records = {from, std::ranges::upper_bound(from, all.end(), high, {}, &PendingRecord::key)};
  return part;
}

}  // namespace mariner::index
