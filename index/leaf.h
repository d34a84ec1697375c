// The leaf of a B+ tree: sorted records of one length, each a key of 16 bytes and a value.
// FORMAT.md section 5.
//
// A leaf is changed by modifications: a record (it takes the place of one with its key) or a key
// alone (the record with it goes). A committed leaf is made anew from the old one and what is
// pending, in one pass over both.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/commit_function.h"
#include "index/modification_queue.h"
#include "proto/bytes.h"

namespace mariner::index {

struct IndexKey {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const IndexKey&, const IndexKey&) = default;

  [[nodiscard]] static constexpr IndexKey max() { return {UINT64_MAX, UINT64_MAX}; }
  // The next smaller and the next larger one. Requires that there is one.
  [[nodiscard]] constexpr IndexKey before() const {
    return low > 0 ? IndexKey{high, low - 1} : IndexKey{high - 1, UINT64_MAX};
  }
  [[nodiscard]] constexpr IndexKey after() const {
    return low < UINT64_MAX ? IndexKey{high, low + 1} : IndexKey{high + 1, 0};
  }
};

inline constexpr std::size_t kKeyBytes = 16;
inline constexpr std::size_t kLeafHeaderBytes = 32;

struct LeafShape {
  std::size_t contents_bytes = 0;
  std::size_t value_bytes = 0;  // at least 1

  [[nodiscard]] std::size_t record_bytes() const { return kKeyBytes + value_bytes; }
  [[nodiscard]] std::uint32_t capacity() const {
    return static_cast<std::uint32_t>((contents_bytes - kLeafHeaderBytes) / record_bytes());
  }
};

inline void store_key(std::byte* to, IndexKey key) {
  store_le(to, key.high);
  store_le(to + 8, key.low);
}
[[nodiscard]] inline IndexKey load_key(const std::byte* from) {
  return {load_le<std::uint64_t>(from), load_le<std::uint64_t>(from + 8)};
}

// What is pending for one key.
struct PendingRecord {
  IndexKey key;
  const std::byte* value = nullptr;  // null: the record goes
};
// The last of each key in [low, high], by key; of what was not there at `since`, which `pending`
// extends.
[[nodiscard]] std::vector<PendingRecord> sorted_pending(
    const PendingModifications& pending, IndexKey low, IndexKey high,
    const PendingModifications::Stamp& since = {});

// Reads a leaf's contents; empty contents are a leaf without records.
class Leaf {
 public:
  Leaf(std::span<const std::byte> contents, const LeafShape& shape);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] IndexKey key(std::uint32_t i) const { return load_key(record(i)); }
  [[nodiscard]] std::span<const std::byte> value(std::uint32_t i) const {
    return {record(i) + kKeyBytes, record_bytes_ - kKeyBytes};
  }
  [[nodiscard]] const std::byte* record(std::uint32_t i) const {
    return records_ + i * record_bytes_;
  }
  // The first record whose key is not below `key`; count() if there is none.
  [[nodiscard]] std::uint32_t lower_bound(IndexKey key) const;

 private:
  std::size_t record_bytes_;
  std::uint32_t count_ = 0;
  const std::byte* records_ = nullptr;
};

// Whether the contents are a leaf of this shape: its count fits and its keys ascend.
[[nodiscard]] bool is_leaf(std::span<const std::byte> contents, const LeafShape& shape);

// Calls take(key, value), where the key stands in front of the value's bytes, for what the leaf
// holds with `pending` applied and whose key is in [low, high], in order, or from the last to the
// first; ends when that returns false. True if it came to the end.
template <typename Take>
bool walk_leaf(const Leaf& leaf, std::span<const PendingRecord> pending, IndexKey low,
               IndexKey high, bool descending, Take take) {
  std::uint32_t from = leaf.lower_bound(low);
  std::uint32_t to = high == IndexKey::max() ? leaf.count() : leaf.lower_bound(high.after());
  std::size_t first = 0;
  std::size_t last = pending.size();
  while (from < to || first < last) {
    const bool has_stored = from < to;
    const bool has_pending = first < last;
    const std::uint32_t stored = descending ? to - 1 : from;
    const PendingRecord* const next =
        has_pending ? &pending[descending ? last - 1 : first] : nullptr;
    bool takes_pending = has_pending;
    bool same = false;
    if (has_stored && has_pending) {
      const IndexKey key = leaf.key(stored);
      same = key == next->key;
      takes_pending = same || (descending ? next->key > key : next->key < key);
    }
    if (takes_pending) {
      descending ? --last : ++first;
      if (same) descending ? --to : ++from;
      if (next->value != nullptr && !take(next->key, next->value)) return false;
    } else {
      descending ? --to : ++from;
      if (!take(leaf.key(stored), leaf.value(stored).data())) return false;
    }
  }
  return true;
}

// Tells which records nobody needs any more: they are left out when their leaf is committed.
class RecordFilter {
 public:
  virtual ~RecordFilter() = default;
  // Any thread.
  [[nodiscard]] virtual bool is_expired(IndexKey key, std::span<const std::byte> value) const = 0;
};

// Applies what is pending; divides the result over as many blocks as it needs: evenly, or, if all
// that is new is behind all that was there, one full block after another. `filter` may be null.
void commit_leaf(BlockCommit& commit, const LeafShape& shape, const RecordFilter* filter);

// Applies one modification in place; false when the leaf is full. `contents` are a leaf's.
[[nodiscard]] bool apply_to_leaf(std::span<std::byte> contents, Modification modification,
                                 const LeafShape& shape);

}  // namespace mariner::index
