// The internal nodes of a B+ tree, in memory: which leaf holds which keys.
//
// Two levels, of any width: a root of the first keys of nodes, and nodes of at most kNodeLeaves
// leaves. A leaf holds the keys from its own first key up to the next leaf's. The first leaf begins
// with the smallest key. Owner's thread only.
#pragma once

#include <algorithm>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/leaf.h"

namespace mariner::index {

// The number of a leaf, given by the tree.
using LeafNumber = std::uint32_t;

class LeafMap {
 public:
  static constexpr std::size_t kNodeLeaves = 256;

  // The leaf whose range has `key`. Requires at least one leaf.
  [[nodiscard]] LeafNumber find(IndexKey key) const;
  // The same for many keys at once: what each waits for in memory, all wait for together.
  static constexpr std::size_t kFoundAtOnceMax = 32;
  void find_all(std::span<const IndexKey> keys, std::span<LeafNumber> leaves) const;
  // The last leaf, and its first key. Require at least one leaf.
  [[nodiscard]] LeafNumber last() const { return nodes_.back()->leaves.back(); }
  [[nodiscard]] IndexKey last_low() const { return nodes_.back()->lows.back(); }
  // The smallest first key above `key`; nothing if there is none: the range of `key`'s leaf ends
  // there.
  [[nodiscard]] std::optional<IndexKey> next_low(IndexKey key) const;
  // The last of the first keys that `is_before` holds for, which it does up to one of them and not
  // behind it; it does for the first one.
  template <typename IsBefore>
  [[nodiscard]] IndexKey last_low(IsBefore is_before) const {
    const auto last = [&](const auto& lows) {
      const auto behind = std::partition_point(lows.begin() + 1, lows.end(), is_before);
      return static_cast<std::size_t>(behind - lows.begin()) - 1;
    };
    const Node& node = *nodes_[last(root_)];
    return node.lows[last(node.lows)];
  }
  // `low` is not there yet; the first one is the smallest key.
  void insert(IndexKey low, LeafNumber leaf);
  // Its range goes to the leaf before it. Not the first one.
  void erase(IndexKey low);
  // Its range goes to the second one. Requires that there is one.
  void erase_first();

  // Calls visit(low, leaf) for each, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const std::unique_ptr<Node>& node : nodes_) {
      for (std::size_t i = 0; i < node->lows.size(); ++i) visit(node->lows[i], node->leaves[i]);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Node {
    boost::container::static_vector<IndexKey, kNodeLeaves + 1> lows;
    boost::container::static_vector<LeafNumber, kNodeLeaves + 1> leaves;
  };
  struct Place {
    std::size_t node = 0;
    std::size_t leaf = 0;
  };
  [[nodiscard]] Place place_of(IndexKey key) const;

  std::vector<IndexKey> root_;  // the first key of each node
  std::vector<std::unique_ptr<Node>> nodes_;
  std::size_t size_ = 0;
};

}  // namespace mariner::index
