// The TL index of one volume: ordered by (time, LBN), what was written when (design.md section 2).
//
// An entry is a write: key {sequence, time}, both of which ascend; value what the log's record says
// of it, and where that stands. Entries come in the order of their sequence numbers, so that they
// are written once, leaf by leaf. Owner's thread only.
#pragma once

#include <cstdint>

#include "index/btree.h"
#include "index/version_index.h"
#include "logging/record.h"

namespace mariner::index {

inline constexpr std::size_t kIndexedWriteBytes = 40;
// FORMAT.md section 8.
void pack_indexed_write(const IndexedWrite& write, std::span<std::byte, kIndexedWriteBytes> to);
[[nodiscard]] IndexedWrite unpack_indexed_write(IndexKey key, std::span<const std::byte> from);

// What the index remembers of a record.
[[nodiscard]] IndexedWrite indexed_write_of(const logging::Record& record,
                                            const logging::LogLocation& location);

class TlIndex {
 public:
  // The options of its tree.
  static BTreeOptions tree_options(FunctionId id) {
    return {.id = id, .value_bytes = kIndexedWriteBytes};
  }

  // `tree` outlives it.
  explicit TlIndex(BTree& tree) : tree_(tree) {}

  [[nodiscard]] static IndexKey key_of(const logging::Record& record) {
    return {record.sequence.value, record.time.ns};
  }

  // `number`: of the log record, as in Bosc::modify.
  void insert(const IndexedWrite& write, std::uint64_t number);
  // Of a leaf that is made again, if the write's key is in `range` (BTree::restore).
  void restore(const IndexedWrite& write, KeyRange range);

  // Shows the writes in (after, at], in order, until `visit` returns false; `done` then.
  void for_each(SequenceNumber after, SequenceNumber at,
                UniqueFunction<bool(const IndexedWrite&)> visit,
                UniqueFunction<void(Result<void>)> done);

  using Found = UniqueFunction<void(Result<std::optional<IndexMoment>>)>;
  // The last write at or before the moment.
  void find(SequenceNumber at, Found found);
  void find(VersionTime at, Found found);

  // Writes up to this one are not needed any more. They may be found still.
  void drop_through(SequenceNumber sequence) { tree_.drop_before({sequence.value + 1, 0}); }

 private:
  BTree& tree_;
};

}  // namespace mariner::index
