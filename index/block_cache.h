// Blocks of an index file in memory, as the file has them or newer.
//
// A dirty one has modifications that its place on disk lacks: it stays until it is committed. Of
// the clean ones those that were not looked at lately go first (CLOCK). Owner's thread only.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "index/index_block.h"
#include "proto/payload.h"

namespace mariner::index {

class BlockCache {
 public:
  struct Entry {
    BlockAddress address;
    Payload block;
    bool dirty = false;
    bool used = false;  // lately
  };

  // At most `blocks_max` of `block_bytes`.
  BlockCache(std::size_t blocks_max, std::size_t block_bytes)
      : blocks_max_(blocks_max), block_bytes_(block_bytes) {}

  // Null when it is not there. Valid until the next insert() or erase().
  [[nodiscard]] Entry* find(BlockAddress address);
  // Requires that it is not there. False when there is no room: all others are dirty. `evicted`
  // is called with the address of a block that goes for it.
  template <typename Evicted>
  bool insert(BlockAddress address, Payload block, Evicted evicted) {
    if (!shrink(evicted)) return false;
    if (entries_.size() >= blocks_max_) {
      const std::size_t victim = find_victim();
      if (victim == entries_.size()) return false;
      evicted(entries_[victim].address);
      by_address_.erase(entries_[victim].address.value);
      by_address_[address.value] = static_cast<std::uint32_t>(victim);
      entries_[victim] = {address, std::move(block), false, true};
      hand_ = victim + 1;
      return true;
    }
    by_address_[address.value] = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({address, std::move(block), false, true});
    return true;
  }
  // From now on it holds at most so many; those above that go with shrink(), or with the next
  // insert().
  void set_blocks_max(std::size_t blocks_max) { blocks_max_ = blocks_max; }
  // False when dirty ones keep it above its bound.
  template <typename Evicted>
  bool shrink(Evicted evicted) {
    while (entries_.size() > blocks_max_) {
      const std::size_t victim = find_victim();
      if (victim == entries_.size()) return false;
      evicted(entries_[victim].address);
      remove(victim);
    }
    return true;
  }
  void erase(BlockAddress address);
  void set_dirty(Entry& entry, bool dirty);

  // Calls visit(address) for each dirty one.
  template <typename Visit>
  void for_each_dirty(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.dirty) visit(entry.address);
    }
  }

  [[nodiscard]] std::size_t bytes() const { return entries_.size() * block_bytes_; }
  [[nodiscard]] std::size_t bytes_max() const { return blocks_max_ * block_bytes_; }
  [[nodiscard]] std::size_t dirty_bytes() const { return dirty_ * block_bytes_; }

 private:
  // A clean one, or entries_.size() if there is none.
  [[nodiscard]] std::size_t find_victim();
  void remove(std::size_t slot);

  std::size_t blocks_max_;
  const std::size_t block_bytes_;
  std::vector<Entry> entries_;
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> by_address_;
  std::size_t hand_ = 0;
  std::size_t dirty_ = 0;
};

}  // namespace mariner::index
