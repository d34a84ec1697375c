#include "index/block_cache.h"

#include <utility>

#include "proto/check.h"

namespace mariner::index {

BlockCache::Entry* BlockCache::find(BlockAddress address) {
  const auto found = by_address_.find(address.value);
  if (found == by_address_.end()) return nullptr;
  Entry& entry = entries_[found->second];
  entry.used = true;
  return &entry;
}

std::size_t BlockCache::find_victim() {
  for (std::size_t looked = 0; looked < 2 * entries_.size(); ++looked) {
    if (hand_ >= entries_.size()) hand_ = 0;
    Entry& entry = entries_[hand_];
    if (!entry.dirty && !std::exchange(entry.used, false)) return hand_;
    ++hand_;
  }
  return entries_.size();
}

void BlockCache::remove(std::size_t slot) {
  CHECK(!entries_[slot].dirty);
  by_address_.erase(entries_[slot].address.value);
  if (slot + 1 != entries_.size()) {
    entries_[slot] = std::move(entries_.back());
    by_address_[entries_[slot].address.value] = static_cast<std::uint32_t>(slot);
  }
  entries_.pop_back();
}

void BlockCache::erase(BlockAddress address) {
  const auto found = by_address_.find(address.value);
  if (found == by_address_.end()) return;
  set_dirty(entries_[found->second], false);
  remove(found->second);
}

void BlockCache::set_dirty(Entry& entry, bool dirty) {
  if (entry.dirty == dirty) return;
  entry.dirty = dirty;
  dirty_ += dirty ? std::size_t{1} : ~std::size_t{0};
}

}  // namespace mariner::index
