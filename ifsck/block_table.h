// A number for each of some blocks, ascending by block: it takes little room, is read from a file
// in no time, and knows what is in a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"

namespace mariner::ifsck {

class BlockTable {
 public:
  using Entry = std::pair<FsBlock, std::uint32_t>;

  BlockTable() = default;
  BlockTable(std::initializer_list<Entry> entries);
  // Ascending, each block once.
  explicit BlockTable(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  // In any order, each block once; sort() is due before anything is looked for.
  void add(FsBlock block, std::uint32_t value) { entries_.emplace_back(block, value); }
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void sort();

  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(entries_, [&](const Entry& each) { return predicate(each.first); });
  }

  // Null: it has none.
  [[nodiscard]] const std::uint32_t* find(FsBlock block) const;
  // Of blocks from `first` to before `end`.
  [[nodiscard]] std::span<const Entry> within(FsBlock first, FsBlock end) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  friend bool operator==(const BlockTable&, const BlockTable&) = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace mariner::ifsck
