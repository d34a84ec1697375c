// The variant One-Queue of dissertation 3.4.2: all updates wait in one queue, in the order in which
// they came; when it is full, the first kHeadUpdates of it are committed together, in the order of
// their blocks' addresses.
//
// The dissertation does not say how many are committed at a time: here as many as its runs have
// blocks (3.2.2). Their blocks are read all at once and written all at once, so that the disk may
// order them itself, too. What finds an update in the queue is not counted as memory.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "index/modification_queue.h"
#include "tests/bench/queued_rows.h"

namespace mariner::bench {

class OneQueueRows final : public QueuedRows {
 public:
  static constexpr std::size_t kHeadUpdates = 32;

  // `loop` outlives it.
  static Result<std::unique_ptr<OneQueueRows>> create(const RowEngineOptions& options,
                                                      RingLoop& loop);

  [[nodiscard]] std::string name() const override { return "One-Queue"; }
  void apply(std::span<const RowUpdate> updates) override;
  void commit() override;

 private:
  struct Update {
    std::uint32_t table = 0;
    IndexKey key;
    std::vector<std::byte> value;  // empty: the row goes
  };
  struct Newest {
    const Update* update = nullptr;  // of the key
    std::uint32_t waiting = 0;       // updates of it
  };

  OneQueueRows(const RowEngineOptions& options, RingLoop& loop, std::unique_ptr<RowPages> pages);
  void commit_head();

  [[nodiscard]] std::vector<index::PendingRecord> pending(std::uint32_t table, Page page,
                                                          KeyRange range) const override;
  void settle(Page /*page*/) override {}  // commit_head() waits for its writes
  [[nodiscard]] std::size_t queued_bytes() const override { return queued_bytes_; }
  [[nodiscard]] std::uint64_t cycles() const override { return 0; }

  const std::size_t queue_bytes_max_;
  std::deque<Update> queue_;
  std::map<std::pair<std::uint32_t, IndexKey>, Newest> by_key_;
  std::size_t queued_bytes_ = 0;
  index::ModificationPool pool_;  // of those that are being committed
};

}  // namespace mariner::bench
