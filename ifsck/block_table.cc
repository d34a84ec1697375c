#include "ifsck/block_table.h"

#include <algorithm>

namespace mariner::ifsck {

BlockTable::BlockTable(std::initializer_list<Entry> entries) : entries_(entries) { sort(); }

void BlockTable::own() {
  if (!packed_) return;
  const auto unpacked = packed_->all();
  entries_.assign(unpacked.begin(), unpacked.end());
  packed_.reset();
}

void BlockTable::sort() {
  if (!packed_ && !std::ranges::is_sorted(entries_)) std::ranges::sort(entries_);
}

const std::uint32_t* BlockTable::find(FsBlock block) const {
  if (packed_) return packed_->find(block);
  const auto found = std::ranges::lower_bound(entries_, block, {}, &Entry::first);
  return found == entries_.end() || found->first != block ? nullptr : &found->second;
}

std::span<const BlockTable::Entry> BlockTable::within(FsBlock first, FsBlock end) const {
  if (packed_) return packed_->within(first, end);
  const auto begin = std::ranges::lower_bound(entries_, first, {}, &Entry::first);
  return {begin, std::ranges::lower_bound(begin, entries_.end(), end, {}, &Entry::first)};
}

bool operator==(const BlockTable& one, const BlockTable& other) {
  return std::ranges::equal(one.all(), other.all());
}

}  // namespace mariner::ifsck
