#include "ifsck/block_table.h"

#include <algorithm>

namespace mariner::ifsck {

BlockTable::BlockTable(std::initializer_list<Entry> entries) : entries_(entries) { sort(); }

void BlockTable::sort() {
  if (!std::ranges::is_sorted(entries_)) std::ranges::sort(entries_);
}

const std::uint32_t* BlockTable::find(FsBlock block) const {
  const auto found = std::ranges::lower_bound(entries_, block, {}, &Entry::first);
  return found == entries_.end() || found->first != block ? nullptr : &found->second;
}

std::span<const BlockTable::Entry> BlockTable::within(FsBlock first, FsBlock end) const {
  const auto begin = std::ranges::lower_bound(entries_, first, {}, &Entry::first);
  return {begin, std::ranges::lower_bound(begin, entries_.end(), end, {}, &Entry::first)};
}

}  // namespace mariner::ifsck
