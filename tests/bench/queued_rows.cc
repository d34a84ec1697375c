#include "tests/bench/queued_rows.h"

#include <algorithm>
#include <utility>

namespace mariner::bench {

std::span<const std::byte> QueuedRows::packed(IndexKey key, Value value) {
  packed_.resize(index::kKeyBytes + value.size());
  index::store_key(packed_.data(), key);
  std::ranges::copy(value, packed_.begin() + index::kKeyBytes);
  return packed_;
}

void QueuedRows::begin_find(std::uint32_t table, KeyRange range, Found done) {
  if (pages_->is_empty(table)) return done(std::nullopt);
  const std::size_t value_bytes = options_.tables[table].value_bytes;
  const auto answer = [&](IndexKey key, const std::byte* value) {
    done(index::IndexRecord{key, {value, value + value_bytes}});
  };
  IndexKey high = range.high;
  while (true) {
    const Page page = pages_->page_of(table, high);
    const std::vector<index::PendingRecord> waiting = pending(table, page, {range.low, high});
    // Nothing on disk can be behind it: no need to read.
    const bool is_last = range.low == range.high || (options_.tables[table].ascends_within_high &&
                                                     range.low.high == range.high.high);
    if (is_last && !waiting.empty()) {
      const index::PendingRecord& last = waiting.back();
      if (last.value != nullptr) return answer(last.key, last.value);
      if (range.low == range.high) return done(std::nullopt);
    }
    settle(page);
    const index::Leaf leaf(pages_->view(page), pages_->shape(table));
    bool found = false;
    index::walk_leaf(leaf, waiting, range.low, high, true,
                     [&](IndexKey key, const std::byte* value) {
                       answer(key, value);
                       found = true;
                       return false;
                     });
    if (found) return;
    const IndexKey low = pages_->low(page);
    if (low <= range.low) return done(std::nullopt);
    high = low.before();
  }
}

std::uint64_t QueuedRows::count(std::uint32_t table, KeyRange range) {
  if (pages_->is_empty(table)) return 0;
  std::uint64_t rows = 0;
  std::optional<IndexKey> at = range.low;
  while (at && *at <= range.high) {
    const Page page = pages_->page_of(table, *at);
    const std::optional<IndexKey> next = pages_->next_low(table, *at);
    const IndexKey high = next && *next <= range.high ? next->before() : range.high;
    const std::vector<index::PendingRecord> waiting = pending(table, page, {*at, high});
    settle(page);
    const index::Leaf leaf(pages_->view(page), pages_->shape(table));
    index::walk_leaf(leaf, waiting, *at, high, false, [&](IndexKey, const std::byte*) {
      ++rows;
      return true;
    });
    at = next;
  }
  return rows;
}

EngineCounts QueuedRows::counts() const {
  const PageCache::Counts& disk = pages_->counts();
  return {.reads = disk.reads,
          .bytes_read = disk.bytes_read,
          .writes = disk.writes,
          .bytes_written = disk.bytes_written,
          .disk_bytes = pages_->file_bytes(),
          .memory_bytes = queued_bytes(),
          .node_bytes = pages_->node_bytes(),
          .cycles = cycles()};
}

}  // namespace mariner::bench
