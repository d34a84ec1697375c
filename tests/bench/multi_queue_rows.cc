#include "tests/bench/multi_queue_rows.h"

#include <algorithm>
#include <utility>

namespace mariner::bench {
namespace {

// Of the memory, runs have so much at most: one is read, one is applied, one is written, and what
// is applied stands there twice.
constexpr std::size_t kQueuedRunsPart = 8;
constexpr std::size_t kRunBuffers = 4;

std::uint32_t run_pages_for(const RowEngineOptions& options) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(
      options.memory_bytes / kQueuedRunsPart / kRunBuffers / options.block_bytes, 1,
      MultiQueueRows::kRunPagesMax));
}

}  // namespace

Result<std::unique_ptr<MultiQueueRows>> MultiQueueRows::create(const RowEngineOptions& options,
                                                               RingLoop& loop) {
  auto pages = RowPages::create(options, loop);
  if (!pages) return pages.error();
  return std::unique_ptr<MultiQueueRows>(new MultiQueueRows(options, loop, *std::move(pages)));
}

MultiQueueRows::MultiQueueRows(const RowEngineOptions& options, RingLoop& loop,
                               std::unique_ptr<RowPages> pages)
    : QueuedRows(options, loop, std::move(pages)),
      run_pages_max_(run_pages_for(options)),
      queue_bytes_max_(options.memory_bytes -
                       kRunBuffers * run_pages_max_ * std::size_t{options.block_bytes}),
      pool_({.chunk_bytes = chunk_bytes_for(options.tables)}) {}

MultiQueueRows::~MultiQueueRows() {
  if (reading_) pages_->await(*reading_);
  if (writing_) pages_->await(*writing_);
  for (index::ModificationQueue& queue : queues_) pool_.clear(queue);
}

void MultiQueueRows::apply(std::span<const RowUpdate> updates) {
  for (const RowUpdate& update : updates) {
    const Page page = pages_->page_of(update.table, update.key);
    if (page >= queues_.size()) queues_.resize(pages_->pages());
    pool_.append(queues_[page], packed(update.key, update.value));
    dirty_.insert(page);
    while (pool_.used_bytes() > queue_bytes_max_) commit_run();
  }
}

// From the first dirty page on, as long as half of it is dirty; it ends with a dirty one. Null when
// it would have to wait for what is being written.
std::unique_ptr<MultiQueueRows::Run> MultiQueueRows::next_run() {
  std::optional<std::uint32_t> first = dirty_.next(position_);
  if (!first) {
    first = dirty_.next(0);
    if (!first) return nullptr;
    ++cycles_;
  }
  auto run = std::make_unique<Run>();
  run->first = *first;
  std::uint32_t dirty = 0;
  for (Page page = *first; page < pages_->pages() && page - *first < run_pages_max_; ++page) {
    if (!dirty_.contains(page)) continue;
    const std::uint32_t length = page - *first + 1;
    if (2 * ++dirty < length) break;
    run->count = length;
  }
  position_ = run->first + run->count;
  return run;
}

void MultiQueueRows::commit_run() {
  if (!reading_) {
    finish();
    reading_ = next_run();
    if (!reading_) return;
    pages_->begin_read(*reading_);
  }
  const std::unique_ptr<Run> run = std::exchange(reading_, nullptr);
  // What is committed now is not dirty for the one that is read ahead.
  std::vector<index::ModificationQueue> taken(run->count);
  for (std::uint32_t i = 0; i < run->count; ++i) {
    dirty_.erase(run->first + i);
    taken[i] = std::exchange(queues_[run->first + i], {});
  }
  const Page position = position_;
  const std::uint64_t cycles = cycles_;
  if (std::unique_ptr<Run> next = next_run()) {
    const bool waits = next->meets(*run) || (writing_ && writing_->meets(*next));
    const bool is_new =
        writing_ && std::ranges::any_of(writing_->added, [&](const auto& added) {
          return added.first >= next->first && added.first < next->first + next->count;
        });
    if (waits || is_new) {
      position_ = position;
      cycles_ = cycles;
    } else {
      reading_ = std::move(next);
      pages_->begin_read(*reading_);
    }
  }
  pages_->await(*run);
  pages_->commit(*run, pool_, [&](Page page) -> const index::ModificationQueue* {
    const index::ModificationQueue& queue = taken[page - run->first];
    return queue.empty() ? nullptr : &queue;
  });
  for (index::ModificationQueue& queue : taken) pool_.clear(queue);
  queues_.resize(std::max<std::size_t>(queues_.size(), pages_->pages()));
  finish();
  writing_ = std::make_unique<Run>(std::move(*run));
  pages_->begin_write(*writing_);
}

// The last write.
void MultiQueueRows::finish() {
  if (writing_) pages_->await(*writing_);
  writing_.reset();
}

void MultiQueueRows::commit() {
  while (dirty_.count() > 0 || reading_) commit_run();
  finish();
  pages_->flush();
}

std::vector<index::PendingRecord> MultiQueueRows::pending(std::uint32_t /*table*/, Page page,
                                                          KeyRange range) const {
  if (page >= queues_.size()) return {};
  return index::sorted_pending({pool_, &queues_[page]}, range.low, range.high);
}

}  // namespace mariner::bench
