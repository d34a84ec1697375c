#include "index/btree.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// What is saved: the length of values and the number of leaves, then each leaf.
constexpr std::size_t kSavedHeaderBytes = 8;
constexpr std::size_t kSavedLeafBytes = kKeyBytes + 8;

Error damaged(FunctionId id, const char* what) {
  return {ErrorCode::kCorrupt,
          "the index's checkpoint: tree " + std::to_string(id.value) + " " + what};
}

}  // namespace

Result<std::unique_ptr<BTree>> BTree::open(Bosc& store, const BTreeOptions& options) {
  std::unique_ptr<BTree> tree(new BTree(store, options));
  CHECK(tree->shape_.capacity() >= 4);
  if (Result<void> r = tree->load(store.saved(options.id)); !r) return r.error();
  store.add_function(options.id, *tree);
  if (tree->map_.size() == 0) {
    const Result<BlockAddress> address = store.allocate(options.id, 0);
    if (!address) return address.error();
    tree->new_leaf({}, *address);
    tree->knows_last_key_ = true;
  }
  return tree;
}

BTree::BTree(Bosc& store, const BTreeOptions& options)
    : store_(store),
      options_(options),
      shape_{store.contents_bytes(), options.value_bytes},
      capacity_(shape_.capacity()),
      follow_at_(capacity_ * options.ascending_fill / 100) {
  CHECK(options.value_bytes >= 1);
}

Result<void> BTree::load(std::span<const std::byte> saved) {
  if (saved.empty()) return {};
  if (saved.size() < kSavedHeaderBytes ||
      load_le<std::uint32_t>(saved.data()) != options_.value_bytes) {
    return damaged(options_.id, "has values of another length");
  }
  const auto count = load_le<std::uint32_t>(saved.data() + 4);
  if (saved.size() != kSavedHeaderBytes + std::size_t{count} * kSavedLeafBytes || count == 0) {
    return damaged(options_.id, "has another number of leaves than it says");
  }
  const std::byte* from = saved.data() + kSavedHeaderBytes;
  for (std::uint32_t i = 0; i < count; ++i, from += kSavedLeafBytes) {
    const IndexKey low = load_key(from);
    const BlockAddress address{load_le<std::uint32_t>(from + kKeyBytes)};
    const bool ascends = i == 0 ? low == IndexKey{} : low > leaves_.back().low;
    if (!ascends || !store_.belongs_to(address, options_.id)) {
      return damaged(options_.id, "has leaves out of order, or blocks of another one");
    }
    new_leaf(low, address)->stored = load_le<std::uint32_t>(from + kKeyBytes + 4);
    effective_count_ += leaves_.back().stored;
    stored_count_ += leaves_.back().stored;
  }
  return {};
}

std::size_t BTree::saved_bytes() const { return kSavedHeaderBytes + map_.size() * kSavedLeafBytes; }

void BTree::save(std::span<std::byte> to) const {
  CHECK(to.size() == saved_bytes());
  std::byte* p = to.data();
  store_le<std::uint32_t>(p, static_cast<std::uint32_t>(options_.value_bytes));
  store_le<std::uint32_t>(p + 4, static_cast<std::uint32_t>(map_.size()));
  p += kSavedHeaderBytes;
  map_.for_each([&](IndexKey low, LeafNumber number) {
    const LeafState& leaf = leaves_[number];
    store_key(p, low);
    store_le<std::uint32_t>(p + kKeyBytes, leaf.address.value);
    store_le<std::uint32_t>(p + kKeyBytes + 4, leaf.stored);
    p += kSavedLeafBytes;
  });
}

BTree::LeafState* BTree::new_leaf(IndexKey low, BlockAddress address) {
  LeafNumber number = static_cast<LeafNumber>(leaves_.size());
  if (unused_.empty()) {
    leaves_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  leaves_[number] = {low, address, 0, 0};
  map_.insert(low, number);
  ++map_changes_;
  store_.set_tag(address, number);
  if (is_rebuilding(low)) store_.hold(address);
  return &leaves_[number];
}

void BTree::insert(IndexKey key, Value value, std::uint64_t number) {
  // Keys that ascend are not searched for.
  const bool is_last = knows_last_key_ && key > last_key_ && key >= map_.last_low();
  insert_at(is_last ? map_.last() : map_.find(key), {key, value, number});
}

void BTree::insert_all(std::span<const Insert> inserts) {
  std::array<IndexKey, LeafMap::kFoundAtOnceMax> keys;
  std::array<LeafNumber, LeafMap::kFoundAtOnceMax> leaves;
  while (!inserts.empty()) {
    const std::size_t count = std::min(inserts.size(), LeafMap::kFoundAtOnceMax);
    for (std::size_t i = 0; i < count; ++i) keys[i] = inserts[i].key;
    map_.find_all(std::span(keys).first(count), std::span(leaves).first(count));
    for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(&leaves_[leaves[i]], 1);
    for (std::size_t i = 0; i < count; ++i) store_.prefetch(leaves_[leaves[i]].address);
    for (std::size_t i = 0; i < count; ++i) store_.prefetch_queue(leaves_[leaves[i]].address);
    const std::uint64_t changes = map_changes_;
    for (std::size_t i = 0; i < count; ++i) {
      // What was found holds unless a leaf has come in between.
      insert_at(map_changes_ == changes ? leaves[i] : map_.find(keys[i]), inserts[i]);
    }
    inserts = inserts.subspan(count);
  }
}

void BTree::insert_at(LeafNumber at, const Insert& insert) {
  CHECK(insert.value.size() == options_.value_bytes);
  modification_.resize(shape_.record_bytes());
  store_key(modification_.data(), insert.key);
  std::memcpy(modification_.data() + kKeyBytes, insert.value.data(), insert.value.size());
  at = leaf_for_insert(insert.key, at);
  if (!store_.modify(leaves_[at].address, modification_, insert.number)) return;
  ++leaves_[at].pending;
  ++effective_count_;
}

// With room for the key, if that can be had without reading. `at`: the leaf that has the key now.
LeafNumber BTree::leaf_for_insert(IndexKey key, LeafNumber at) {
  const std::uint32_t effective = leaves_[at].stored + leaves_[at].pending;
  if (effective >= follow_at_) {
    if (knows_last_key_ && key > last_key_ && !map_.next_low(key)) {
      follow_leaf(key);
      store_.commit_early(leaves_[at].address);
      at = map_.find(key);
    } else if (effective >= capacity_ && !store_.on_disk(leaves_[at].address)) {
      divide_queue(at);
      at = map_.find(key);
    }
  }
  last_key_ = std::max(last_key_, key);
  return at;
}

void BTree::erase(IndexKey key, std::uint64_t number) {
  std::byte packed[kKeyBytes];
  store_key(packed, key);
  store_.modify(leaves_[map_.find(key)].address, packed, number);
}

// The last leaf is full, and all to come is behind it. When the store is full, too, its queue
// grows.
void BTree::follow_leaf(IndexKey low) {
  const Result<BlockAddress> address = store_.allocate(options_.id, 0);
  if (address) new_leaf(low, *address);
}

// Of a leaf that was never written: everything it has is in its queue.
void BTree::divide_queue(LeafNumber number) {
  const BlockAddress address = leaves_[number].address;
  if (store_.is_committing(address)) return;
  std::vector<IndexKey> keys;
  keys.reserve(leaves_[number].pending);
  store_.query(
      address,
      [&](const BlockView& view) {
        view.pending.for_each([&](Modification modification) {
          if (modification.size() > kKeyBytes) keys.push_back(load_key(modification.data()));
        });
        return true;
      },
      [](const Result<bool>&) {});
  std::ranges::sort(keys);
  const auto [first, last] = std::ranges::unique(keys);
  keys.erase(first, last);
  effective_count_ -= leaves_[number].pending - keys.size();
  leaves_[number].pending = static_cast<std::uint32_t>(keys.size());
  if (keys.size() < capacity_ / 2) return;  // the same keys again and again
  const IndexKey low = keys[keys.size() / 2];
  const Result<BlockAddress> added = store_.allocate(options_.id, 0);
  if (!added) return;
  LeafState& upper = *new_leaf(low, *added);
  upper.pending = static_cast<std::uint32_t>(keys.size() - keys.size() / 2);
  leaves_[number].pending -= upper.pending;
  const BlockAddress to = upper.address;
  store_.divide(address, [address, to, low](Modification modification) {
    return load_key(modification.data()) < low ? address : to;
  });
}

std::optional<KeyRange> BTree::begin_rebuild(BlockAddress address) {
  if (!store_.belongs_to(address, options_.id)) return std::nullopt;
  LeafState& leaf = leaves_[store_.tag(address)];
  if (leaf.address != address) return std::nullopt;
  const Result<BlockAddress> fresh = store_.allocate(options_.id, store_.tag(address));
  if (!fresh) return std::nullopt;
  store_.free(address);
  store_.hold(*fresh);
  effective_count_ -= leaf.stored + leaf.pending;
  stored_count_ -= leaf.stored;
  leaf.address = *fresh;
  leaf.stored = leaf.pending = 0;
  const std::optional<IndexKey> next = map_.next_low(leaf.low);
  rebuilding_.push_back({leaf.low, next ? next->before() : IndexKey::max()});
  return rebuilding_.back();
}

void BTree::restore(IndexKey key, std::optional<Value> value) {
  CHECK(is_rebuilding(key));
  modification_.resize(value ? shape_.record_bytes() : kKeyBytes);
  store_key(modification_.data(), key);
  if (value) std::memcpy(modification_.data() + kKeyBytes, value->data(), options_.value_bytes);
  LeafNumber at = map_.find(key);
  if (value) at = leaf_for_insert(key, at);
  store_.restore(leaves_[at].address, modification_);
  if (!value) return;
  ++leaves_[at].pending;
  ++effective_count_;
}

void BTree::end_rebuild(KeyRange range) {
  std::erase(rebuilding_, range);
  map_.for_each([&](IndexKey low, LeafNumber leaf) {
    if (range.contains(low)) store_.end_hold(leaves_[leaf].address);
  });
}

bool BTree::is_rebuilding(IndexKey key) const {
  return std::ranges::any_of(rebuilding_,
                             [&](const KeyRange& range) { return range.contains(key); });
}

void BTree::drop_before(IndexKey key) {
  for (;;) {
    const std::optional<IndexKey> next = map_.next_low({});
    if (!next || *next > key) return;
    const LeafNumber number = map_.find({});
    const BlockAddress address = leaves_[number].address;
    // One that is made again, or that would become the first one meanwhile, is known by its range.
    if (store_.is_committing(address) || is_rebuilding({}) || is_rebuilding(*next)) return;
    effective_count_ -= leaves_[number].stored + leaves_[number].pending;
    stored_count_ -= leaves_[number].stored;
    map_.erase_first();
    ++map_changes_;
    leaves_[map_.find({})].low = {};
    store_.free(address);
    unused_.push_back(number);
  }
}

void BTree::commit(BlockCommit& commit) const { commit_leaf(commit, shape_, options_.filter); }

bool BTree::apply(std::span<std::byte> contents, Modification modification) {
  return apply_to_leaf(contents, modification, shape_);
}

void BTree::committed(const BlockCommit& commit) {
  const LeafNumber number = store_.tag(commit.address());
  effective_count_ -= leaves_[number].stored + leaves_[number].pending;
  stored_count_ -= leaves_[number].stored;
  leaves_[number].stored = Leaf(commit.result(0), shape_).count();
  std::vector<LeafNumber> all{number};
  for (std::size_t i = 0; i < commit.added().size(); ++i) {
    const Leaf added(commit.result(i + 1), shape_);
    CHECK(added.count() > 0);
    LeafState& leaf = *new_leaf(added.key(0), commit.added()[i]);
    leaf.stored = added.count();
    all.push_back(store_.tag(leaf.address));
  }
  if (all.size() > 1) {
    store_.divide(commit.address(), [this](Modification modification) {
      return leaves_[map_.find(load_key(modification.data()))].address;
    });
  }
  for (const LeafNumber leaf : all) {
    leaves_[leaf].pending = store_.queued(leaves_[leaf].address);
    effective_count_ += leaves_[leaf].stored + leaves_[leaf].pending;
    stored_count_ += leaves_[leaf].stored;
  }
  if (!map_.next_low(leaves_[all.back()].low)) {
    const Leaf last(commit.result(commit.added().size()), shape_);
    if (last.count() > 0) last_key_ = std::max(last_key_, last.key(last.count() - 1));
    knows_last_key_ = true;
  }
  // An empty leaf's range goes to the one before it, but for the first one and the last one.
  const LeafState& leaf = leaves_[number];
  if (leaf.stored + leaf.pending > 0 || leaf.low == IndexKey{} || !map_.next_low(leaf.low)) return;
  // Nor one that is made again: then lookups would take some of its keys for known.
  if (is_rebuilding(leaf.low.before())) return;
  map_.erase(leaf.low);
  ++map_changes_;
  store_.free(leaf.address);
  unused_.push_back(number);
}
std::size_t BTree::node_bytes() const {
  return map_.memory_bytes() + leaves_.capacity() * sizeof(LeafState);
}

}  // namespace mariner::index
