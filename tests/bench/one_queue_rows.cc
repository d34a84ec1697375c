#include "tests/bench/one_queue_rows.h"

#include <algorithm>

namespace mariner::bench {
namespace {

// What the blocks of a commit take, before and after, goes off.
std::size_t queue_bytes_for(const RowEngineOptions& options) {
  const std::size_t blocks = 2 * OneQueueRows::kHeadUpdates * options.block_bytes;
  return std::max(options.memory_bytes - std::min(blocks, options.memory_bytes),
                  options.memory_bytes / 2);
}

std::size_t bytes_of(std::size_t value_bytes) { return index::kKeyBytes + value_bytes; }

}  // namespace

Result<std::unique_ptr<OneQueueRows>> OneQueueRows::create(const RowEngineOptions& options,
                                                           RingLoop& loop) {
  auto pages = RowPages::create(options, loop);
  if (!pages) return pages.error();
  return std::unique_ptr<OneQueueRows>(new OneQueueRows(options, loop, *std::move(pages)));
}

OneQueueRows::OneQueueRows(const RowEngineOptions& options, RingLoop& loop,
                           std::unique_ptr<RowPages> pages)
    : QueuedRows(options, loop, std::move(pages)),
      queue_bytes_max_(queue_bytes_for(options)),
      pool_({.chunk_bytes = chunk_bytes_for(options.tables)}) {}

void OneQueueRows::apply(std::span<const RowUpdate> updates) {
  for (const RowUpdate& update : updates) {
    // So that the table has one, for lookups.
    static_cast<void>(pages_->page_of(update.table, update.key));
    queue_.push_back({update.table, update.key, {update.value.begin(), update.value.end()}});
    Newest& newest = by_key_[{update.table, update.key}];
    newest.update = &queue_.back();
    ++newest.waiting;
    queued_bytes_ += bytes_of(update.value.size());
    while (queued_bytes_ > queue_bytes_max_) commit_head();
  }
}

void OneQueueRows::commit_head() {
  std::map<Page, index::ModificationQueue> by_page;
  const std::size_t count = std::min(kHeadUpdates, queue_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Update& update = queue_[i];
    pool_.append(by_page[pages_->page_of(update.table, update.key)],
                 packed(update.key, update.value));
  }
  std::deque<RowPages::Run> runs;
  for (const auto& [page, waiting] : by_page) {
    RowPages::Run& run = runs.emplace_back();
    run.first = page;
    run.count = 1;
    pages_->begin_read(run);
  }
  for (RowPages::Run& run : runs) pages_->await(run);
  for (RowPages::Run& run : runs) {
    pages_->commit(run, pool_, [&](Page page) { return &by_page.find(page)->second; });
    pages_->begin_write(run);
  }
  for (RowPages::Run& run : runs) pages_->await(run);
  for (auto& [page, waiting] : by_page) pool_.clear(waiting);
  for (std::size_t i = 0; i < count; ++i) {
    const Update& update = queue_.front();
    const auto newest = by_key_.find({update.table, update.key});
    if (--newest->second.waiting == 0) by_key_.erase(newest);
    queued_bytes_ -= bytes_of(update.value.size());
    queue_.pop_front();
  }
}

void OneQueueRows::commit() {
  while (!queue_.empty()) commit_head();
  pages_->flush();
}

std::vector<index::PendingRecord> OneQueueRows::pending(std::uint32_t table, Page page,
                                                        KeyRange range) const {
  std::vector<index::PendingRecord> records;
  const IndexKey low = std::max(range.low, pages_->low(page));
  for (auto at = by_key_.lower_bound({table, low});
       at != by_key_.end() && at->first.first == table && at->first.second <= range.high; ++at) {
    const std::vector<std::byte>& value = at->second.update->value;
    records.push_back({at->first.second, value.empty() ? nullptr : value.data()});
  }
  return records;
}

}  // namespace mariner::bench
