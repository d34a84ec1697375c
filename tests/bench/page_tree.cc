#include "tests/bench/page_tree.h"

#include <algorithm>
#include <cstring>

#include "proto/check.h"

namespace mariner::bench {

using index::IndexKey;
using index::Leaf;
using index::LeafNumber;

PageTree::PageTree(PageCache& pages, std::size_t value_bytes)
    : pages_(pages), shape_{pages.contents_bytes(), value_bytes} {}

void PageTree::new_leaf(IndexKey low, PageCache::Address page) {
  map_.insert(low, static_cast<LeafNumber>(leaves_.size()));
  leaves_.push_back({low, page});
}

// Zeroed contents get the records one by one, at the end.
void PageTree::put_records(std::span<std::byte> contents,
                           std::span<const std::byte> records) const {
  std::memset(contents.data(), 0, contents.size());
  const std::size_t record_bytes = shape_.record_bytes();
  for (std::size_t at = 0; at < records.size(); at += record_bytes) {
    CHECK(index::apply_to_leaf(contents, records.subspan(at, record_bytes), shape_));
  }
}

void PageTree::load(const std::function<std::optional<Record>()>& next, unsigned fill_percent) {
  CHECK(leaves_.empty());
  const std::size_t goal = std::max<std::size_t>(shape_.capacity() * fill_percent / 100, 1);
  std::size_t count = goal;
  IndexKey last;
  std::span<std::byte> contents;
  while (const std::optional<Record> record = next()) {
    CHECK(leaves_.empty() || last < record->key);
    last = record->key;
    if (count == goal) {
      const PageCache::Loaded page = pages_.load_page();
      new_leaf(leaves_.empty() ? IndexKey{} : record->key, page.address);
      contents = page.contents;
      count = 0;
    }
    modification_.resize(shape_.record_bytes());
    index::store_key(modification_.data(), record->key);
    std::ranges::copy(record->value, modification_.begin() + index::kKeyBytes);
    CHECK(index::apply_to_leaf(contents, modification_, shape_));
    ++count;
  }
  pages_.end_load();
}

void PageTree::insert(IndexKey key, Value value) {
  CHECK(value.size() == shape_.value_bytes);
  if (leaves_.empty()) new_leaf({}, pages_.add_page());
  modification_.resize(shape_.record_bytes());
  index::store_key(modification_.data(), key);
  std::ranges::copy(value, modification_.begin() + index::kKeyBytes);
  const LeafNumber number = map_.find(key);
  if (index::apply_to_leaf(pages_.change(leaves_[number].page), modification_, shape_)) return;
  divide(number, key);
  CHECK(index::apply_to_leaf(pages_.change(leaves_[map_.find(key)].page), modification_, shape_));
}

void PageTree::divide(LeafNumber number, IndexKey key) {
  const std::span<std::byte> contents = pages_.change(leaves_[number].page);
  const Leaf leaf(contents, shape_);
  const std::uint32_t count = leaf.count();
  if (key > leaf.key(count - 1)) {
    new_leaf(key, pages_.add_page());
    return;
  }
  const std::uint32_t half = count / 2;
  const IndexKey low = leaf.key(half);
  const std::vector<std::byte> records(leaf.record(0), leaf.record(count));
  const std::size_t kept = half * shape_.record_bytes();
  put_records(contents, std::span(records).first(kept));
  const PageCache::Address upper = pages_.add_page();
  put_records(pages_.change(upper), std::span(records).subspan(kept));
  new_leaf(low, upper);
}

void PageTree::erase(IndexKey key) {
  if (leaves_.empty()) return;
  std::byte packed[index::kKeyBytes];
  index::store_key(packed, key);
  CHECK(index::apply_to_leaf(pages_.change(leaves_[map_.find(key)].page), packed, shape_));
}

std::optional<PageTree::Record> PageTree::find_last(Range range) {
  if (leaves_.empty()) return std::nullopt;
  IndexKey high = range.high;
  while (true) {
    const LeafState& state = leaves_[map_.find(high)];
    const Leaf leaf(pages_.view(state.page), shape_);
    const std::uint32_t end =
        high == IndexKey::max() ? leaf.count() : leaf.lower_bound(high.after());
    if (end > 0) {
      const IndexKey key = leaf.key(end - 1);
      if (key < range.low) return std::nullopt;
      return Record{key, leaf.value(end - 1)};
    }
    if (state.low <= range.low) return std::nullopt;
    high = state.low.before();
  }
}

std::uint64_t PageTree::count(Range range) {
  if (leaves_.empty()) return 0;
  std::uint64_t count = 0;
  std::optional<IndexKey> at = range.low;
  while (at && *at <= range.high) {
    const Leaf leaf(pages_.view(leaves_[map_.find(*at)].page), shape_);
    const std::uint32_t end =
        range.high == IndexKey::max() ? leaf.count() : leaf.lower_bound(range.high.after());
    count += end - leaf.lower_bound(*at);
    at = map_.next_low(*at);
  }
  return count;
}

}  // namespace mariner::bench
