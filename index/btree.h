// A B+ tree over a BOSC store: inserts and erases never read, lookups see them at once.
// Dissertation 3.3; BOSC paper 5.
//
// Internal nodes are in memory (leaf_map.h); leaves are blocks of the store. A leaf is divided when
// it is committed, by what it holds with all that is pending (the effective count). One that is not
// on disk yet is divided as soon as its queue would not fit, from the queue alone; and where keys
// ascend, the last leaf is followed by a new one without being read. A leaf that a commit leaves
// empty is given back.
//
// A key is inserted once or replaces the record with that key. Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/block_reader.h"
#include "index/bosc.h"
#include "index/leaf.h"
#include "index/leaf_map.h"

namespace mariner::index {

struct BTreeOptions {
  FunctionId id;
  std::size_t value_bytes = 0;
  // What is pending for a run of keys (those with one `high`) is newer than what is committed: a
  // lookup of the last one needs no more than that. True where keys of one `high` ascend.
  bool ascends_within_high = false;
  // How full a leaf becomes, in percent, before keys that ascend go on in the next one: less than
  // all of it if others will come between them.
  std::uint32_t ascending_fill = 100;
  const RecordFilter* filter = nullptr;  // outlives it
};

// Owned copy of a record.
struct IndexRecord {
  IndexKey key;
  std::vector<std::byte> value;
  friend bool operator==(const IndexRecord&, const IndexRecord&) = default;
};

struct KeyRange {
  IndexKey low;
  IndexKey high;  // inclusive
  [[nodiscard]] bool contains(IndexKey key) const { return key >= low && key <= high; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

class BTree final : public CommitFunction {
 public:
  using Value = std::span<const std::byte>;
  using Found = UniqueFunction<void(Result<std::optional<IndexRecord>>)>;

  // Registers itself with `store`, which outlives it, and takes up what was saved there.
  // kCorrupt when that is damaged.
  static Result<std::unique_ptr<BTree>> open(Bosc& store, const BTreeOptions& options);

  // `number`: of the log record, as in Bosc::modify.
  void insert(IndexKey key, Value value, std::uint64_t number);
  struct Insert {
    IndexKey key;
    Value value;
    std::uint64_t number = 0;
  };
  // The same for many, in order: takes a fraction of the time where their leaves are far apart.
  void insert_all(std::span<const Insert> inserts);
  void erase(IndexKey key, std::uint64_t number);

  enum class Direction { kAscending, kDescending };
  // Gives back the leaves whose keys are all below `key`, without reading them: nobody needs what
  // they hold any more. Those that are being committed stay, and what is behind them.
  void drop_before(IndexKey key);
  // The first key of the last leaf for which `is_before` holds (LeafMap::last_low).
  template <typename IsBefore>
  [[nodiscard]] IndexKey last_low(IsBefore is_before) const {
    return map_.last_low(is_before);
  }

  // The record of the greatest key in `range`, or of the smallest one.
  void find_last(KeyRange range, Found found) {
    find(range, Direction::kDescending, std::move(found));
  }
  void find_first(KeyRange range, Found found) {
    find(range, Direction::kAscending, std::move(found));
  }

  // Of each of `ranges`, which ascend and do not overlap, the record of the greatest key, if there
  // is one: use(number of the range, key, value), in no order. A computation: see BlockReader.
  template <typename Use>
  void find_last_each(BlockReader& reader, std::span<const KeyRange> ranges, Use use) const {
    find_each(reader, ranges,
              [&](std::size_t i, IndexKey key, Value value) { use(i, key, value); });
  }
  // Shows the records of `range`, in order, until `use` returns false. A computation.
  template <typename Use>
  void walk(BlockReader& reader, KeyRange range, Use use) const {
    walk_leaves(reader, std::span(&range, 1),
                [&](IndexKey key, Value value) { return use(key, value); });
  }
  // The same of many ranges, which ascend and do not overlap: all of them. Looks at the leaves that
  // have keys in one, each once.
  template <typename Use>
  void walk_each(BlockReader& reader, std::span<const KeyRange> ranges, Use use) const {
    walk_leaves(reader, ranges, [&](IndexKey key, Value value) {
      use(key, value);
      return true;
    });
  }
  // The smallest key in `range`. A computation.
  [[nodiscard]] std::optional<IndexKey> first_key(BlockReader& reader, KeyRange range) const;
  // Shows the records of `range` in order until `visit` returns false; `done` then. Where that is
  // long, leaves are read ahead, and it has several turns.
  void scan(KeyRange range, Direction direction, UniqueFunction<bool(IndexKey, Value)> visit,
            UniqueFunction<void(Result<void>)> done);

  // A damaged leaf is made again from the log. From begin_rebuild() on the leaf of block `address`
  // is empty, and lookups in its range, which is returned, fail with kUnavailable. The owner
  // restores, in order, all that the log says of keys in the range, up to what was inserted last;
  // then end_rebuild(). Nothing when the block is no leaf (any more). It is not being committed.
  std::optional<KeyRange> begin_rebuild(BlockAddress address);
  // No value: the key is erased.
  void restore(IndexKey key, std::optional<Value> value);
  void end_rebuild(KeyRange range);

  // Reads every leaf. `damaged` is called with each range of keys that is lost.
  void check(UniqueFunction<void(KeyRange, const Error&)> damaged, UniqueFunction<void()> done);

  [[nodiscard]] std::size_t leaves() const { return map_.size(); }
  // With pending inserts counted as if each had a new key.
  [[nodiscard]] std::uint64_t effective_count() const { return effective_count_; }
  // Of these, those that are not committed yet.
  [[nodiscard]] std::uint64_t pending_count() const { return effective_count_ - stored_count_; }
  [[nodiscard]] std::size_t node_bytes() const;
  [[nodiscard]] const LeafShape& shape() const { return shape_; }

  void commit(BlockCommit& commit) const override;
  void committed(const BlockCommit& commit) override;
  bool apply(std::span<std::byte> contents, Modification modification) override;
  std::size_t saved_bytes() const override;
  void save(std::span<std::byte> to) const override;

 private:
  struct LeafState {
    IndexKey low;
    BlockAddress address;
    std::uint32_t stored = 0;   // records at the last commit
    std::uint32_t pending = 0;  // inserts since
  };
  struct Scan;
  struct Check;

  BTree(Bosc& store, const BTreeOptions& options);
  Result<void> load(std::span<const std::byte> saved);
  LeafState* new_leaf(IndexKey low, BlockAddress address);
  void follow_leaf(IndexKey low);
  void divide_queue(LeafNumber number);
  [[nodiscard]] LeafNumber leaf_for_insert(IndexKey key, LeafNumber at);
  void insert_at(LeafNumber at, const Insert& insert);
  [[nodiscard]] bool is_rebuilding(IndexKey key) const;
  void find(KeyRange range, Direction direction, Found found);
  void step(const std::shared_ptr<Scan>& scan);
  void ask(const std::shared_ptr<Scan>& scan);
  void meet_damage(const std::shared_ptr<Scan>& scan, const Error& error);
  [[nodiscard]] static bool advance(Scan& scan);
  void read_ahead(Scan& scan) const;
  using VisitEach = UniqueFunction<void(std::size_t, IndexKey, Value)>;
  using Visit = UniqueFunction<bool(IndexKey, Value)>;
  void walk_leaves(BlockReader& reader, std::span<const KeyRange> ranges, Visit visit) const;
  void find_each(BlockReader& reader, std::span<const KeyRange> ranges, VisitEach visit) const;
  struct Each;
  [[nodiscard]] bool look_each(BlockAddress address, Each& each, const BlockView& view) const;
  [[nodiscard]] bool holds_leaf(std::span<const std::byte> contents, const Scan& scan) const;
  void check_from(IndexKey low, const std::shared_ptr<Check>& check);
  [[nodiscard]] bool look(Scan& scan, const BlockView& view) const;

  Bosc& store_;
  const BTreeOptions options_;
  const LeafShape shape_;
  const std::uint32_t capacity_;   // of a leaf
  const std::uint32_t follow_at_;  // keys that ascend go on in the next leaf
  LeafMap map_;
  std::vector<LeafState> leaves_;  // by LeafNumber, which is their blocks' tag
  std::vector<LeafNumber> unused_;
  std::vector<KeyRange> rebuilding_;
  std::uint64_t map_changes_ = 0;
  std::vector<std::byte> modification_;  // the one that is being made
  // The greatest key that was inserted since the start or is known to be in the last leaf; and
  // whether the last leaf has been looked at.
  IndexKey last_key_;
  bool knows_last_key_ = false;
  std::uint64_t effective_count_ = 0;
  std::uint64_t stored_count_ = 0;
};

}  // namespace mariner::index
