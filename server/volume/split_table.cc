#include "server/volume/split_table.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {

void SplitTable::put(BlockRange range, PendingContent content) {
  if (content.kind == PendingContent::Kind::kHistory) {
    memory_->erase(range);
    past_->put(range, std::move(content));
  } else {
    past_->erase(range);
    memory_->put(range, std::move(content));
  }
}

void SplitTable::put_past(std::span<const BlockRange> ranges, const PendingContent& content) {
  CHECK(content.kind == PendingContent::Kind::kHistory);
  memory_->erase_each(ranges);
  past_->put_each(ranges, content);
}

void SplitTable::visit(
    BlockRange range, const std::function<void(BlockRange, const PendingContent*)>& visitor) const {
  if (past_->empty()) return memory_->visit(range, visitor);
  memory_->visit(range, [&](BlockRange part, const PendingContent* content) {
    if (content != nullptr) return visitor(part, content);
    past_->visit(part, visitor);
  });
}

bool SplitTable::has_past(BlockRange range) const {
  if (past_->empty()) return false;
  return !past_->next_run(range.first).range.intersect(range).empty();
}

std::shared_ptr<PendingTable> SplitTable::take_past() {
  return std::exchange(past_, std::make_shared<PendingTable>());
}

}  // namespace mariner::volume
