#include "server/volume/fetch_order.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

FetchOrder::~FetchOrder() { CHECK_MSG(!looking(), "an order is destroyed while it is looked up"); }

void FetchOrder::look_up(std::shared_ptr<const PendingTable> table,
                         UniqueFunction<void(Lbn)> looked, Done done) {
  CHECK(!looking());
  clear();
  order_of_ = table;
  table_ = std::move(table);
  looked_ = std::move(looked);
  done_ = std::move(done);
  next_ = Lbn{0};
  blocks_ = kBlocksMin;
  found_ = std::make_shared<std::vector<Found>>();
  stopping_ = false;
  parts_.executor.post([this] { ask(); });
}

void FetchOrder::clear() {
  order_.clear();
  begun_ = 0;
}

// Between two questions others have a turn of their own: hosts read meanwhile.
void FetchOrder::ask() {
  if (stopping_) return end(Error{ErrorCode::kAborted, "the order is not needed any more"});
  std::vector<History::Lookup> lookups;
  for (std::uint64_t left = blocks_; left > 0 && lookups.size() < kLookupsMax;) {
    const PendingTable::Run run = table_->next_run(next_);
    if (run.range.empty()) break;
    const BlockRange part{run.range.first, {std::min(run.range.count.value, left)}};
    lookups.push_back({part, run.content.at});
    left -= part.count.value;
    next_ = part.end();
  }
  if (lookups.empty() || found_->size() >= kRunsMax) return sort();
  locate_all(parts_.history, std::move(lookups),
             [this](const Result<History::Located>& located) { take(located); });
}

void FetchOrder::take(const Result<History::Located>& located) {
  if (!located) return end(located.error());
  if (looked_) looked_(next_);
  for (const PastRun& run : located->runs) found_->push_back({run.sequence, run.range});
  blocks_ = located->runs.size() < kLookupsMax ? std::min(blocks_ * 2, kBlocksMax)
                                               : std::max(blocks_ / 2, kBlocksMin);
  parts_.executor.in_next_turn([this] { ask(); });
}

void FetchOrder::sort() {
  const auto order = std::make_shared<std::vector<BlockRange>>();
  parts_.worker.run(
      [found = found_, order]() -> Result<void> {
        std::ranges::stable_sort(*found, {}, &Found::sequence);
        order->reserve(found->size());
        for (const Found& each : *found) order->push_back(each.range);
        return {};
      },
      [this, order](const Result<void>& sorted) {
        if (stopping_) return end(Error{ErrorCode::kAborted, "the order is not needed any more"});
        order_ = std::move(*order);
        end(sorted);
      });
}

void FetchOrder::end(const Result<void>& result) {
  table_.reset();
  found_.reset();
  looked_ = nullptr;
  std::exchange(done_, nullptr)(result);
}

std::span<const BlockRange> FetchOrder::rest(const std::shared_ptr<const PendingTable>& table) {
  // The same blocks in another table have other contents, which stand elsewhere.
  if (order_of_.lock() != table) clear();
  const auto is_pending = [&](const BlockRange& range) {
    return !table->next_run(range.first).range.intersect(range).empty();
  };
  while (begun_ < order_.size() && !is_pending(order_[begun_])) ++begun_;
  return std::span(order_).subspan(begun_);
}

}  // namespace mariner::volume
