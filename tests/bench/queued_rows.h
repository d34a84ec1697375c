// Rows in B+ trees whose updates wait in a queue: what the variants One-Queue and Multi-Queue of
// dissertation 3.4.2 have in common, lookups above all. How updates wait and who commits them is
// theirs: one_queue_rows.h, multi_queue_rows.h.
#pragma once

#include <memory>
#include <vector>

#include "tests/bench/row_engine.h"
#include "tests/bench/row_pages.h"

namespace mariner::bench {

class QueuedRows : public RowEngine {
 public:
  void load(std::uint32_t table, const Next& next) final { pages_->load(table, next); }
  void begin_find(std::uint32_t table, KeyRange range, Found done) final;
  std::uint64_t count(std::uint32_t table, KeyRange range) final;
  void poll() final { loop_.poll(); }
  [[nodiscard]] EngineCounts counts() const final;

 protected:
  using Page = RowPages::Page;

  QueuedRows(const RowEngineOptions& options, RingLoop& loop, std::unique_ptr<RowPages> pages)
      : options_(options), loop_(loop), pages_(std::move(pages)) {}

  // What waits for the page of `table` and has its key in `range`: the last of each key, by key.
  [[nodiscard]] virtual std::vector<index::PendingRecord> pending(std::uint32_t table, Page page,
                                                                  KeyRange range) const = 0;
  // Until what is being written to the page has been.
  virtual void settle(Page page) = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;

  // A modification as commit_leaf() takes it.
  [[nodiscard]] std::span<const std::byte> packed(IndexKey key, Value value);

  const RowEngineOptions options_;
  RingLoop& loop_;
  const std::unique_ptr<RowPages> pages_;

 private:
  std::vector<std::byte> packed_;
};

}  // namespace mariner::bench
