#include "index/sorted_pending.h"

#include <algorithm>
#include <iterator>

namespace mariner::index {
namespace {

// Both by key; of one key that of `newer`.
std::vector<PendingRecord> merged(std::span<const PendingRecord> older,
                                  std::span<const PendingRecord> newer) {
  std::vector<PendingRecord> all;
  all.reserve(older.size() + newer.size());
  auto from = older.begin();
  for (const PendingRecord& each : newer) {
    const auto until =
        std::ranges::lower_bound(from, older.end(), each.key, {}, &PendingRecord::key);
    all.insert(all.end(), from, until);
    all.push_back(each);
    from = until != older.end() && until->key == each.key ? std::next(until) : until;
  }
  all.insert(all.end(), from, older.end());
  return all;
}

std::span<const PendingRecord> part_of(std::span<const PendingRecord> all, IndexKey low,
                                       IndexKey high) {
  const auto from = std::ranges::lower_bound(all, low, {}, &PendingRecord::key);
  return {from, std::ranges::upper_bound(from, all.end(), high, {}, &PendingRecord::key)};
}

}  // namespace

void SortedPending::empty(Leaf& leaf) {
  records_ -= leaf.count();
  leaf.records = nullptr;
  leaf.recent = {};
}

SortedPending::Leaf& SortedPending::leaf_at(BlockAddress address,
                                            const PendingModifications& pending) {
  const PendingModifications::Stamp stamp = pending.stamp();
  const auto place = places_.find(address.value);
  if (place == places_.end()) {
    leaves_.push_front({.address = address, .stamp = stamp, .looks = 0, .records = nullptr});
    places_[address.value] = leaves_.begin();
    if (leaves_.size() > kLeavesMax) forget_last();
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
  records_ += leaf.count();
  keep_bound(leaf);
}

void SortedPending::forget_last() {
  empty(leaves_.back());
  places_.erase(leaves_.back().address.value);
  leaves_.pop_back();
}

void SortedPending::keep_bound(const Leaf& but) {
  while (records_ > kRecordsMax && &leaves_.back() != &but) forget_last();
}

void SortedPending::bring_up_to_date(Leaf& leaf, const PendingModifications& pending) {
  if (pending.count() == leaf.stamp.count()) return;
  const std::vector<PendingRecord> come = sorted_pending(pending, {}, IndexKey::max(), leaf.stamp);
  leaf.stamp = pending.stamp();
  records_ -= leaf.count();
  leaf.recent = merged(leaf.recent, come);
  records_ += leaf.count();
  if (leaf.recent.size() > std::max(kRecentMax, leaf.records->size() / kRecentPart)) {
    return keep(leaf, merged(*leaf.records, leaf.recent));
  }
  keep_bound(leaf);
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
  const std::span<const PendingRecord> recent = part_of(leaf.recent, low, high);
  if (recent.empty()) {
    part.all = leaf.records;
    part.records = part_of(*part.all, low, high);
  } else {
    part.own = merged(part_of(*leaf.records, low, high), recent);
    part.records = part.own;
  }
  return part;
}

}  // namespace mariner::index
