#include "index/leaf_map.h"

#include <algorithm>
#include <array>

#include "proto/check.h"

namespace mariner::index {
namespace {

// The last that is not above `key`: the first one never is.
std::size_t last_not_above(std::span<const IndexKey> keys, IndexKey key) {
  const IndexKey* from = keys.data();
  std::size_t count = keys.size();
  while (count > 1) {  // without branches: which way it goes cannot be foreseen
    const std::size_t half = count / 2;
    from = from[half] <= key ? from + half : from;
    count -= half;
  }
  return static_cast<std::size_t>(from - keys.data());
}

}  // namespace

LeafMap::Place LeafMap::place_of(IndexKey key) const {
  CHECK(size_ > 0);
  const std::size_t node = last_not_above(root_, key);
  return {node, last_not_above(nodes_[node]->lows, key)};
}

LeafNumber LeafMap::find(IndexKey key) const {
  const Place place = place_of(key);
  return nodes_[place.node]->leaves[place.leaf];
}

// A binary search in each key's node, one step of all of them after the other: the steps of
// different keys do not depend on each other, so that the processor waits for memory once for all.
void LeafMap::find_all(std::span<const IndexKey> keys, std::span<LeafNumber> leaves) const {
  CHECK(keys.size() <= kFoundAtOnceMax && keys.size() == leaves.size() && size_ > 0);
  struct Search {
    const Node* node = nullptr;
    const IndexKey* from = nullptr;
    std::size_t count = 0;
  };
  std::array<Search, kFoundAtOnceMax> searches;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    searches[i].node = nodes_[last_not_above(root_, keys[i])].get();
    __builtin_prefetch(searches[i].node);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Search& search = searches[i];
    search.from = search.node->lows.data();
    search.count = search.node->lows.size();
    __builtin_prefetch(search.from + search.count / 2);
  }
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Search& search = searches[i];
      if (search.count <= 1) continue;
      const std::size_t half = search.count / 2;
      search.from = search.from[half] <= keys[i] ? search.from + half : search.from;
      search.count -= half;
      __builtin_prefetch(search.from + search.count / 2);
      more = true;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Search& search = searches[i];
    leaves[i] =
        search.node->leaves[static_cast<std::size_t>(search.from - search.node->lows.data())];
  }
}

std::optional<IndexKey> LeafMap::next_low(IndexKey key) const {
  const Place place = place_of(key);
  const Node& node = *nodes_[place.node];
  if (place.leaf + 1 < node.lows.size()) return node.lows[place.leaf + 1];
  if (place.node + 1 < nodes_.size()) return root_[place.node + 1];
  return std::nullopt;
}

void LeafMap::insert(IndexKey low, LeafNumber leaf) {
  if (nodes_.empty()) {
    CHECK(low == IndexKey{});
    size_ = 1;
    root_.push_back(low);
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->lows.push_back(low);
    nodes_.back()->leaves.push_back(leaf);
    return;
  }
  const Place place = place_of(low);
  ++size_;
  Node& node = *nodes_[place.node];
  CHECK(node.lows[place.leaf] < low);
  const auto at = static_cast<std::ptrdiff_t>(place.leaf) + 1;
  node.lows.insert(node.lows.begin() + at, low);
  node.leaves.insert(node.leaves.begin() + at, leaf);
  if (node.lows.size() <= kNodeLeaves) return;
  // At its end, if that is where they come; else in the middle.
  const bool is_last = place.node + 1 == nodes_.size() && low == node.lows.back();
  const auto half = static_cast<std::ptrdiff_t>(is_last ? kNodeLeaves : node.lows.size() / 2);
  auto upper = std::make_unique<Node>();
  upper->lows.assign(node.lows.begin() + half, node.lows.end());
  upper->leaves.assign(node.leaves.begin() + half, node.leaves.end());
  node.lows.erase(node.lows.begin() + half, node.lows.end());
  node.leaves.erase(node.leaves.begin() + half, node.leaves.end());
  const auto behind = static_cast<std::ptrdiff_t>(place.node) + 1;
  root_.insert(root_.begin() + behind, upper->lows.front());
  nodes_.insert(nodes_.begin() + behind, std::move(upper));
}

void LeafMap::erase(IndexKey low) {
  const Place place = place_of(low);
  Node& node = *nodes_[place.node];
  CHECK(node.lows[place.leaf] == low && low != IndexKey{});
  --size_;
  const auto at = static_cast<std::ptrdiff_t>(place.leaf);
  node.lows.erase(node.lows.begin() + at);
  node.leaves.erase(node.leaves.begin() + at);
  const auto in_root = static_cast<std::ptrdiff_t>(place.node);
  if (node.lows.empty()) {
    root_.erase(root_.begin() + in_root);
    nodes_.erase(nodes_.begin() + in_root);
  } else if (place.leaf == 0) {
    root_[place.node] = node.lows.front();
  }
}

void LeafMap::erase_first() {
  CHECK(size_ >= 2);
  --size_;
  Node& node = *nodes_.front();
  node.lows.erase(node.lows.begin());
  node.leaves.erase(node.leaves.begin());
  if (node.lows.empty()) {
    root_.erase(root_.begin());
    nodes_.erase(nodes_.begin());
  }
  root_.front() = nodes_.front()->lows.front() = IndexKey{};
}

std::size_t LeafMap::memory_bytes() const {
  return root_.capacity() * sizeof(IndexKey) + nodes_.capacity() * sizeof(void*) +
         nodes_.size() * sizeof(Node);
}

}  // namespace mariner::index
