// A table of pending writes in two: what can be put into the image from memory, and what is to be
// got out of the history first, so that each can go its own way without anybody walking through
// both.
//
// Invariant: a block is in one of the two at most. Owner's thread only.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "server/volume/pending_table.h"

namespace mariner::volume {

class SplitTable {
 public:
  // Replaces whatever is pending for `range`, which is not empty.
  void put(BlockRange range, PendingContent content);
  // Of each of `ranges`, which are in order and do not overlap, by what the history has.
  void put_past(std::span<const BlockRange> ranges, const PendingContent& content);

  // As PendingTable::visit(), of both.
  void visit(BlockRange range,
             const std::function<void(BlockRange, const PendingContent*)>& visitor) const;

  // Zeros, too. The table stays the same; what leaves it is the caller's business.
  [[nodiscard]] const std::shared_ptr<PendingTable>& memory() const { return memory_; }
  [[nodiscard]] const PendingTable& past() const { return *past_; }
  [[nodiscard]] bool has_past(BlockRange range) const;
  // All of it, as a table of its own.
  std::shared_ptr<PendingTable> take_past();
  // Forgets what is of the past below `end`.
  void forget_past_before(Lbn end) { past_->erase_before(end); }

  [[nodiscard]] bool empty() const { return memory_->empty() && past_->empty(); }

 private:
  std::shared_ptr<PendingTable> memory_ = std::make_shared<PendingTable>();
  std::shared_ptr<PendingTable> past_ = std::make_shared<PendingTable>();
};

}  // namespace mariner::volume
