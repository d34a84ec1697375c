// A B+ tree of the usual kind: an insert finds its leaf, reads it if it is not cached, and changes
// it in place.
//
// Leaves are those of index/leaf.h, with the same capacity, in pages of a PageCache that several
// trees may share; internal nodes are in memory (index/leaf_map.h). A full leaf is divided in two;
// where the new key is behind all of it, a new leaf follows it. A leaf that becomes empty stays.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "index/leaf.h"
#include "index/leaf_map.h"
#include "tests/bench/page_cache.h"

namespace mariner::bench {

class PageTree {
 public:
  using IndexKey = index::IndexKey;
  using Value = std::span<const std::byte>;

  struct Range {
    IndexKey low;
    IndexKey high;  // inclusive
  };
  struct Record {
    IndexKey key;
    Value value;  // valid until the next call
  };

  // An empty one. `pages` outlives it.
  PageTree(PageCache& pages, std::size_t value_bytes);

  // Fills the empty tree, past the cache, with what `next` gives in the order of its keys until it
  // gives nothing: `fill_percent` of a leaf's capacity in each.
  void load(const std::function<std::optional<Record>()>& next, unsigned fill_percent);

  // A record with that key is replaced.
  void insert(IndexKey key, Value value);
  void erase(IndexKey key);
  // The record of the greatest key in `range`.
  [[nodiscard]] std::optional<Record> find_last(Range range);
  [[nodiscard]] std::uint64_t count(Range range);

  [[nodiscard]] std::size_t leaves() const { return map_.size(); }
  [[nodiscard]] const index::LeafShape& shape() const { return shape_; }
  [[nodiscard]] std::size_t node_bytes() const {
    return map_.memory_bytes() + leaves_.capacity() * sizeof(LeafState);
  }

 private:
  struct LeafState {
    IndexKey low;
    PageCache::Address page;
  };
  void new_leaf(IndexKey low, PageCache::Address page);
  void divide(index::LeafNumber number, IndexKey key);
  void put_records(std::span<std::byte> contents, std::span<const std::byte> records) const;

  PageCache& pages_;
  const index::LeafShape shape_;
  index::LeafMap map_;
  std::vector<LeafState> leaves_;
  std::vector<std::byte> modification_;
};

}  // namespace mariner::bench
