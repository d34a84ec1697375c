// The variant Multi-Queue of dissertation 3.4.2, straightforwardly: a queue for each block, and a
// commit that goes over the file in the order of addresses, again and again, in runs of
// neighbouring blocks at least half of which have something queued (3.2.2). While a run is applied,
// the next one is read and the last one written. It is BOSC without what is ours in it: a thread
// that applies, a cache, two places of each block, checkpoints, and lookups that go first.
#pragma once

#include <memory>
#include <vector>

#include "index/dirty_map.h"
#include "index/modification_queue.h"
#include "tests/bench/queued_rows.h"

namespace mariner::bench {

class MultiQueueRows final : public QueuedRows {
 public:
  static constexpr std::uint32_t kRunPagesMax = 32;

  // `loop` outlives it.
  static Result<std::unique_ptr<MultiQueueRows>> create(const RowEngineOptions& options,
                                                        RingLoop& loop);
  ~MultiQueueRows() override;

  [[nodiscard]] std::string name() const override { return "Multi-Queue"; }
  void apply(std::span<const RowUpdate> updates) override;
  void commit() override;

 private:
  using Run = RowPages::Run;

  MultiQueueRows(const RowEngineOptions& options, RingLoop& loop, std::unique_ptr<RowPages> pages);
  [[nodiscard]] std::unique_ptr<Run> next_run();
  void commit_run();
  void finish();

  [[nodiscard]] std::vector<index::PendingRecord> pending(std::uint32_t table, Page page,
                                                          KeyRange range) const override;
  void settle(Page page) override {
    if (writing_ && writing_->has(page)) pages_->await(*writing_);
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return pool_.used_bytes(); }
  [[nodiscard]] std::uint64_t cycles() const override { return cycles_; }

  const std::uint32_t run_pages_max_;
  const std::size_t queue_bytes_max_;
  index::ModificationPool pool_;
  std::vector<index::ModificationQueue> queues_;  // by page
  index::DirtyMap dirty_;                         // pages whose queue is not empty
  Page position_ = 0;                             // of the sweep
  std::uint64_t cycles_ = 0;
  std::unique_ptr<Run> reading_;
  std::unique_ptr<Run> writing_;
};

}  // namespace mariner::bench
