#include "index/leaf.h"

#include <algorithm>
#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// How full a leaf is after a division, in percent: room for what comes between its keys.
constexpr std::size_t kDividedFill = 70;

// Offsets in the leaf's header.
constexpr std::size_t kAtCount = 0;
constexpr std::size_t kAtValueBytes = 4;

void set_header(std::span<std::byte> contents, std::uint32_t count, const LeafShape& shape) {
  std::memset(contents.data(), 0, kLeafHeaderBytes);
  store_le<std::uint32_t>(contents.data() + kAtCount, count);
  store_le<std::uint32_t>(contents.data() + kAtValueBytes,
                          static_cast<std::uint32_t>(shape.value_bytes));
}

// Fills the blocks of a commit with records that come in order.
class LeafWriter {
 public:
  LeafWriter(BlockCommit& commit, const LeafShape& shape, std::size_t records, bool appends)
      : commit_(commit), shape_(shape), record_bytes_(shape.record_bytes()), left_(records) {
    const std::size_t capacity = shape.capacity();
    if (records <= capacity) {
      blocks_left_ = 1;
    } else if (appends) {
      blocks_left_ = (records + capacity - 1) / capacity;
      each_ = capacity;
    } else {
      const std::size_t wanted = std::max<std::size_t>(capacity * kDividedFill / 100, 1);
      blocks_left_ = (records + wanted - 1) / wanted;
    }
    begin(commit.after());
  }

  // With its key in front of it, as everywhere.
  void add(const std::byte* value) {
    if (count_ == goal_) {
      end();
      begin(commit_.add_block());
    }
    std::memcpy(at_, value - kKeyBytes, record_bytes_);
    at_ += record_bytes_;
    ++count_;
  }

  // Nothing follows.
  void end() {
    set_header(contents_, count_, shape_);
    std::memset(at_, 0, static_cast<std::size_t>(contents_.data() + contents_.size() - at_));
  }

 private:
  void begin(std::span<std::byte> contents) {
    contents_ = contents;
    at_ = contents.data() + kLeafHeaderBytes;
    count_ = 0;
    goal_ = each_ > 0 ? std::min(each_, left_) : (left_ + blocks_left_ - 1) / blocks_left_;
    left_ -= goal_;
    --blocks_left_;
  }

  BlockCommit& commit_;
  const LeafShape& shape_;
  const std::size_t record_bytes_;
  std::size_t left_;  // records for the blocks to come
  std::size_t blocks_left_ = 0;
  std::size_t each_ = 0;  // 0: evenly
  std::span<std::byte> contents_;
  std::byte* at_ = nullptr;
  std::uint32_t count_ = 0;
  std::size_t goal_ = 0;
};

}  // namespace

std::vector<PendingRecord> sorted_pending(const PendingModifications& pending, IndexKey low,
                                          IndexKey high, const PendingModifications::Stamp& since) {
  std::vector<PendingRecord> records;
  if (low == IndexKey{} && high == IndexKey::max())
    records.reserve(pending.count() - since.count());
  const auto take = [&](Modification modification) {
    const IndexKey key = load_key(modification.data());
    if (key < low || key > high) return;
    records.push_back(
        {key, modification.size() == kKeyBytes ? nullptr : modification.data() + kKeyBytes});
  };
  pending.for_each(take, since);
  const auto by_key = [](const PendingRecord& a, const PendingRecord& b) { return a.key < b.key; };
  if (!std::ranges::is_sorted(records, by_key)) std::ranges::stable_sort(records, by_key);
  // Of one key the last.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i + 1 < records.size() && records[i + 1].key == records[i].key) continue;
    records[kept++] = records[i];
  }
  records.resize(kept);
  return records;
}

Leaf::Leaf(std::span<const std::byte> contents, const LeafShape& shape)
    : record_bytes_(shape.record_bytes()) {
  if (contents.empty()) return;
  count_ = std::min(load_le<std::uint32_t>(contents.data() + kAtCount), shape.capacity());
  records_ = contents.data() + kLeafHeaderBytes;
}

std::uint32_t Leaf::lower_bound(IndexKey key) const {
  std::uint32_t from = 0;
  std::uint32_t count = count_;
  while (count > 0) {
    const std::uint32_t half = count / 2;
    const bool below = this->key(from + half) < key;
    from = below ? from + half + 1 : from;
    count = below ? count - half - 1 : half;
  }
  return from;
}

bool is_leaf(std::span<const std::byte> contents, const LeafShape& shape) {
  if (contents.size() != shape.contents_bytes ||
      load_le<std::uint32_t>(contents.data() + kAtCount) > shape.capacity() ||
      load_le<std::uint32_t>(contents.data() + kAtValueBytes) != shape.value_bytes) {
    return false;
  }
  const Leaf leaf(contents, shape);
  for (std::uint32_t i = 1; i < leaf.count(); ++i) {
    if (leaf.key(i) <= leaf.key(i - 1)) return false;
  }
  return true;
}

void commit_leaf(BlockCommit& commit, const LeafShape& shape, const RecordFilter* filter) {
  const Leaf before(commit.before(), shape);
  const std::vector<PendingRecord> pending = sorted_pending(commit.pending(), {}, IndexKey::max());
  const auto is_expired = [&](IndexKey key, const std::byte* value) {
    return filter != nullptr && filter->is_expired(key, {value, shape.value_bytes});
  };
  // At most so many. If they may not fit into one block it must be known exactly.
  std::size_t records = before.count() + pending.size();
  if (records > shape.capacity()) {
    records = 0;
    walk_leaf(before, pending, {}, IndexKey::max(), false,
              [&](IndexKey key, const std::byte* value) {
                records += is_expired(key, value) ? 0 : 1;
                return true;
              });
  }
  const bool appends = before.count() > 0 && !pending.empty() &&
                       pending.front().key > before.key(before.count() - 1);
  LeafWriter writer(commit, shape, records, appends);
  walk_leaf(before, pending, {}, IndexKey::max(), false, [&](IndexKey key, const std::byte* value) {
    if (!is_expired(key, value)) writer.add(value);
    return true;
  });
  writer.end();
}

bool apply_to_leaf(std::span<std::byte> contents, Modification modification,
                   const LeafShape& shape) {
  const Leaf leaf(contents, shape);
  const IndexKey key = load_key(modification.data());
  const std::uint32_t at = leaf.lower_bound(key);
  const bool found = at < leaf.count() && leaf.key(at) == key;
  const std::size_t record_bytes = shape.record_bytes();
  std::byte* const record = contents.data() + kLeafHeaderBytes + at * record_bytes;
  std::byte* const end = contents.data() + kLeafHeaderBytes + leaf.count() * record_bytes;
  if (modification.size() == kKeyBytes) {
    if (!found) return true;
    std::memmove(record, record + record_bytes,
                 static_cast<std::size_t>(end - record) - record_bytes);
    std::memset(end - record_bytes, 0, record_bytes);
    store_le<std::uint32_t>(contents.data() + kAtCount, leaf.count() - 1);
    return true;
  }
  CHECK(modification.size() == record_bytes);
  if (!found) {
    if (leaf.count() == shape.capacity()) return false;
    std::memmove(record + record_bytes, record, static_cast<std::size_t>(end - record));
    store_le<std::uint32_t>(contents.data() + kAtCount, leaf.count() + 1);
  }
  std::memcpy(record, modification.data(), record_bytes);
  return true;
}

}  // namespace mariner::index
