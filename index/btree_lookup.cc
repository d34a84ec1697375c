// Lookups in a B+ tree: walks from leaf to leaf, computations over what is in memory, the checker.
#include <algorithm>
#include <memory>
#include <utility>

#include "index/btree.h"
#include "index/repeater.h"
#include "index/sorted_pending.h"

namespace mariner::index {
namespace {

// After so many leaves a walk lets others have their turn: up to about a millisecond.
constexpr std::size_t kLeavesPerTurn = 16;

Error rebuilding() {
  return {ErrorCode::kUnavailable, "a part of the index was damaged and is being made again"};
}

Error not_a_leaf() {
  return {ErrorCode::kCorrupt, "the block holds no leaf, or one of another range of keys"};
}

}  // namespace

struct BTree::Check {
  UniqueFunction<void(KeyRange, const Error&)> damaged;
  UniqueFunction<void()> done;
};

// One walk over a range, leaf by leaf.
struct BTree::Scan {
  KeyRange left;
  Direction direction = Direction::kAscending;
  bool last_only = false;  // only the greatest is wanted
  UniqueFunction<bool(IndexKey, Value)> visit;
  UniqueFunction<void(Result<void>)> done;
  bool checks = false;  // that what is read is a leaf with keys of its range
  bool ended = false;
  bool is_foreign = false;
  // Of the leaf that is looked at.
  IndexKey leaf_low;
  std::optional<IndexKey> next_low;
  std::size_t leaves = 0;  // that have been passed
  // Of those behind it, how many have been read ahead; and the first key of the next one.
  std::size_t ahead = 0;
  std::optional<IndexKey> ahead_low;
  Repeater repeater;
};

bool BTree::look(Scan& scan, const BlockView& view) const {
  if (!view.complete && !(scan.last_only && options_.ascends_within_high)) return false;
  const std::vector<PendingRecord> pending =
      sorted_pending(view.pending, scan.left.low, scan.left.high);
  if (!view.complete) {
    if (pending.empty() || pending.back().value == nullptr ||
        pending.back().key.high != scan.left.high.high) {
      return false;
    }
    scan.visit(pending.back().key, {pending.back().value, options_.value_bytes});
    scan.ended = true;
    return true;
  }
  if (scan.checks && !holds_leaf(view.contents, scan)) {
    scan.is_foreign = true;
    return true;
  }
  const Leaf leaf(view.contents, shape_);
  scan.ended = !walk_leaf(leaf, pending, scan.left.low, scan.left.high,
                          scan.direction == Direction::kDescending,
                          [&](IndexKey key, const std::byte* value) {
                            return scan.visit(key, {value, options_.value_bytes});
                          });
  return true;
}

bool BTree::holds_leaf(std::span<const std::byte> contents, const Scan& scan) const {
  if (contents.empty()) return true;
  if (!is_leaf(contents, shape_)) return false;
  const Leaf leaf(contents, shape_);
  return leaf.count() == 0 || (leaf.key(0) >= scan.leaf_low &&
                               (!scan.next_low || leaf.key(leaf.count() - 1) < *scan.next_low));
}

void BTree::step(const std::shared_ptr<Scan>& scan) {
  scan->repeater.run([&] { ask(scan); });
}

void BTree::ask(const std::shared_ptr<Scan>& scan) {
  const IndexKey at = scan->direction == Direction::kAscending ? scan->left.low : scan->left.high;
  if (is_rebuilding(at)) return meet_damage(scan, rebuilding());
  const LeafState& leaf = leaves_[map_.find(at)];
  scan->leaf_low = leaf.low;
  scan->next_low = map_.next_low(at);
  read_ahead(*scan);
  store_.query(
      leaf.address, [this, scan](const BlockView& view) { return look(*scan, view); },
      [this, scan](const Result<bool>& answer) {
        if (!answer) return meet_damage(scan, answer.error());
        if (std::exchange(scan->is_foreign, false)) return scan->done(not_a_leaf());
        if (*answer && !advance(*scan)) return scan->done({});
        if (*answer && scan->leaves % kLeavesPerTurn == 0) {
          return store_.in_next_turn([this, scan] { step(scan); });
        }
        step(scan);
      });
}

// The further it has got, the more: most walks end in the leaf in which they begin.
void BTree::read_ahead(Scan& scan) const {
  if (scan.direction != Direction::kAscending || scan.leaves == 0) return;
  if (scan.ahead == 0) scan.ahead_low = scan.next_low;
  const std::size_t most = std::min(2 * scan.leaves, store_.read_ahead_max());
  for (; scan.ahead < most && scan.ahead_low && *scan.ahead_low <= scan.left.high; ++scan.ahead) {
    store_.read_ahead(leaves_[map_.find(*scan.ahead_low)].address);
    scan.ahead_low = map_.next_low(*scan.ahead_low);
  }
}

// Goes on when it has been made again, if somebody does that.
void BTree::meet_damage(const std::shared_ptr<Scan>& scan, const Error& error) {
  if (Bosc::is_damage(error) && store_.when_mended([this, scan] { step(scan); })) return;
  scan->done(error);
}

// To the next leaf; false at the end of the range.
bool BTree::advance(Scan& scan) {
  if (scan.ended) return false;
  ++scan.leaves;
  scan.ahead -= scan.ahead > 0 ? 1 : 0;
  if (scan.direction == Direction::kAscending) {
    if (!scan.next_low || *scan.next_low > scan.left.high) return false;
    scan.left.low = *scan.next_low;
    return true;
  }
  if (scan.leaf_low <= scan.left.low) return false;
  scan.left.high = scan.leaf_low.before();
  return true;
}

void BTree::scan(KeyRange range, Direction direction, UniqueFunction<bool(IndexKey, Value)> visit,
                 UniqueFunction<void(Result<void>)> done) {
  if (range.high < range.low) return done({});
  auto scan = std::make_shared<Scan>();
  scan->left = range;
  scan->direction = direction;
  scan->visit = std::move(visit);
  scan->done = std::move(done);
  step(scan);
}

void BTree::find(KeyRange range, Direction direction, Found found) {
  if (range.high < range.low) return found(std::optional<IndexRecord>{});
  auto scan = std::make_shared<Scan>();
  auto record = std::make_shared<std::optional<IndexRecord>>();
  scan->left = range;
  scan->direction = direction;
  scan->last_only = direction == Direction::kDescending;
  scan->visit = [record](IndexKey key, Value value) {
    *record = IndexRecord{key, {value.begin(), value.end()}};
    return false;
  };
  scan->done = [record, found = std::move(found)](const Result<void>& result) mutable {
    if (!result) return found(result.error());
    found(std::move(*record));
  };
  step(scan);
}

// The last records of many ranges, from the last range to the first.
struct BTree::Each {
  std::vector<KeyRange> ranges;
  std::size_t left = 0;  // ranges [0, left) are still open
  VisitEach visit;
  IndexKey leaf_low;
};

void BTree::find_each(BlockReader& reader, std::span<const KeyRange> ranges,
                      VisitEach visit) const {
  Each each{{ranges.begin(), ranges.end()}, ranges.size(), std::move(visit), {}};
  while (each.left > 0) {
    const IndexKey at = each.ranges[each.left - 1].high;
    if (is_rebuilding(at)) return reader.fail(rebuilding());
    const LeafState& leaf = leaves_[map_.find(at)];
    each.leaf_low = leaf.low;
    const bool seen = reader.look(leaf.address, [&, address = leaf.address](const BlockView& view) {
      return look_each(address, each, view);
    });
    if (seen) continue;
    // It is missing: on to those that leaves before it decide for sure, to hear what else is. One
    // that goes on before it most often need not.
    while (each.left > 0 && each.ranges[each.left - 1].high >= each.leaf_low) --each.left;
  }
}

// Those ranges that the leaf has the end of. One that it does not decide goes on before the leaf.
bool BTree::look_each(BlockAddress address, Each& each, const BlockView& view) const {
  if (!view.complete && !options_.ascends_within_high) return false;
  std::size_t first = each.left;
  while (first > 0 && each.ranges[first - 1].high >= each.leaf_low) --first;
  const SortedPending::Part of_leaf = store_.sorted_pending().look(
      address, view.pending, each.ranges[first].low, each.ranges[each.left - 1].high);
  const std::span<const PendingRecord> pending = of_leaf.records;
  const auto pending_of = [&](const KeyRange& range) -> std::span<const PendingRecord> {
    const auto from = std::ranges::lower_bound(pending, range.low, {}, &PendingRecord::key);
    const auto to = std::ranges::upper_bound(pending, range.high, {}, &PendingRecord::key);
    return {from, to};
  };
  if (!view.complete) {
    // Only if the queue decides all of them.
    for (std::size_t i = first; i < each.left; ++i) {
      const std::span<const PendingRecord> of_range = pending_of(each.ranges[i]);
      if (of_range.empty() || of_range.back().value == nullptr ||
          each.ranges[i].low.high != each.ranges[i].high.high) {
        return false;
      }
    }
  }
  const Leaf leaf(view.contents, shape_);
  for (; each.left > first; --each.left) {
    KeyRange& range = each.ranges[each.left - 1];
    const bool found = !walk_leaf(leaf, pending_of(range), range.low, range.high, true,
                                  [&](IndexKey key, const std::byte* value) {
                                    each.visit(each.left - 1, key, {value, options_.value_bytes});
                                    return false;
                                  });
    if (!found && range.low < each.leaf_low) {
      range.high = each.leaf_low.before();
      break;
    }
  }
  return true;
}

void BTree::walk_leaves(BlockReader& reader, std::span<const KeyRange> ranges, Visit visit) const {
  bool goes_on = true;
  IndexKey from;  // what is below it has been shown
  while (goes_on && !ranges.empty()) {
    from = std::max(from, ranges.front().low);
    if (is_rebuilding(from)) return reader.fail(rebuilding());
    const LeafState& leaf = leaves_[map_.find(from)];
    const std::optional<IndexKey> next = map_.next_low(from);
    const auto behind =
        next ? std::ranges::lower_bound(ranges, *next, {}, &KeyRange::low) : ranges.end();
    const std::span<const KeyRange> here(ranges.begin(), behind);
    reader.look(leaf.address, [&](const BlockView& view) {
      if (!view.complete) return false;
      const SortedPending::Part pending =
          store_.sorted_pending().look(leaf.address, view.pending, from, here.back().high);
      std::span<const PendingRecord> left = pending.records;
      for (const KeyRange& range : here) {
        if (!goes_on) break;
        const IndexKey low = std::max(from, range.low);
        const auto first = std::ranges::lower_bound(left, low, {}, &PendingRecord::key);
        const auto last =
            std::ranges::upper_bound(first, left.end(), range.high, {}, &PendingRecord::key);
        left = {last, left.end()};
        goes_on = walk_leaf(Leaf(view.contents, shape_), {first, last}, low, range.high, false,
                            [&](IndexKey key, const std::byte* value) {
                              return visit(key, {value, options_.value_bytes});
                            });
      }
      return true;
    });
    if (!next) return;
    // The last one may have keys in the leaves behind.
    ranges = ranges.subspan(here.size() - (here.back().high >= *next ? 1 : 0));
    from = *next;
  }
}

// Behind a leaf that is missing, which decides it, the next one: so whoever passes over what has no
// keys goes on there, and hears at once what else is missing.
std::optional<IndexKey> BTree::first_key(BlockReader& reader, KeyRange range) const {
  for (;;) {
    if (is_rebuilding(range.low)) {
      reader.fail(rebuilding());
      return std::nullopt;
    }
    const LeafState& leaf = leaves_[map_.find(range.low)];
    const std::optional<IndexKey> next = map_.next_low(range.low);
    std::optional<IndexKey> first;
    const bool seen = reader.look(leaf.address, [&](const BlockView& view) {
      if (!view.complete) return false;
      const SortedPending::Part pending =
          store_.sorted_pending().look(leaf.address, view.pending, range.low, range.high);
      static_cast<void>(walk_leaf(Leaf(view.contents, shape_), pending.records, range.low,
                                  range.high, false, [&](IndexKey key, const std::byte*) {
                                    first = key;
                                    return false;
                                  }));
      return true;
    });
    if (first) return first;
    if (!next || *next > range.high) return std::nullopt;
    if (!seen) return next;
    range.low = *next;
  }
}

void BTree::check(UniqueFunction<void(KeyRange, const Error&)> damaged,
                  UniqueFunction<void()> done) {
  check_from({}, std::make_shared<Check>(Check{std::move(damaged), std::move(done)}));
}

// Leaf by leaf, past those that are damaged.
void BTree::check_from(IndexKey low, const std::shared_ptr<Check>& check) {
  auto scan = std::make_shared<Scan>();
  scan->left = {low, IndexKey::max()};
  scan->checks = true;
  scan->visit = [](IndexKey, Value) { return true; };
  scan->done = [this, scan = scan.get(), check](const Result<void>& result) {
    if (result) return check->done();
    const IndexKey high = scan->next_low ? scan->next_low->before() : IndexKey::max();
    check->damaged({scan->leaf_low, high}, result.error());
    if (!scan->next_low) return check->done();
    check_from(*scan->next_low, check);
  };
  step(scan);
}

}  // namespace mariner::index
