// A number for each of some blocks, ascending by block: it takes little room, is read from a file
// in no time, and knows what is in a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/packed_table.h"

namespace mariner::ifsck {

// One thread, even where it is only looked at: what came from a file is unpacked by that.
class BlockTable {
 public:
  using Entry = PackedTable::Entry;

  BlockTable() = default;
  BlockTable(std::initializer_list<Entry> entries);
  explicit BlockTable(PackedTable packed)
      : packed_(std::make_shared<PackedTable>(std::move(packed))) {}

  // In any order, each block once; sort() is due before anything is looked for.
  void add(FsBlock block, std::uint32_t value) {
    own();
    entries_.push_back({block, value});
  }
  void reserve(std::size_t entries) {
    own();
    entries_.reserve(entries);
  }
  void sort();

  template <typename Predicate>
  void erase_if(Predicate predicate) {
    own();
    std::erase_if(entries_, [&](const Entry& each) { return predicate(each.first); });
  }

  // Null: it has none.
  [[nodiscard]] const std::uint32_t* find(FsBlock block) const;
  // Of blocks from `first` to before `end`.
  [[nodiscard]] std::span<const Entry> within(FsBlock first, FsBlock end) const;
  [[nodiscard]] std::span<const Entry> all() const {
    return packed_ ? packed_->all() : std::span<const Entry>(entries_);
  }
  [[nodiscard]] std::size_t size() const { return packed_ ? packed_->size() : entries_.size(); }
  [[nodiscard]] auto begin() const { return all().begin(); }
  [[nodiscard]] auto end() const { return all().end(); }
  friend bool operator==(const BlockTable& one, const BlockTable& other);

 private:
  // Entries of its own, which may be changed.
  void own();

  std::vector<Entry> entries_;           // unless it is packed
  std::shared_ptr<PackedTable> packed_;  // copies have the same
};

}  // namespace mariner::ifsck
