#include "logging/waiting_records.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {
namespace {

void move_to(std::deque<PendingRecord>& to, std::deque<PendingRecord>::iterator begin,
             std::deque<PendingRecord>::iterator end) {
  to.insert(to.end(), std::make_move_iterator(begin), std::make_move_iterator(end));
}

}  // namespace

bool is_base(const PendingRecord& pending) {
  return pending.record.type == RecordType::kBeforeImage ||
         pending.record.type == RecordType::kRebase ||
         pending.record.type == RecordType::kRelocated;
}

PendingRecord& WaitingRecords::front() {
  CHECK(!empty());
  if (!first_.empty()) return first_.front();
  if (!returned_.empty()) return returned_.front();
  return now_.front();
}

void WaitingRecords::pop_front() {
  CHECK(!empty());
  if (!first_.empty()) return first_.pop_front();
  if (!returned_.empty()) return returned_.pop_front();
  now_.pop_front();
  next_turn();
}

void WaitingRecords::next_turn() {
  if (!now_.empty() || later_.empty()) return;
  auto next = later_.extract(later_.begin());
  turn_ = next.key();
  now_ = std::move(next.mapped());
}

void WaitingRecords::push_back(PendingRecord record) {
  Share& share = shares_[record.record.volume];
  if (share.turn < turn_) share = {turn_};
  if (now_.empty()) turn_ = share.turn;  // nobody else is there to be let go first
  share.bytes += record.batch_bytes();
  std::deque<PendingRecord>& turn = share.turn == turn_ ? now_ : later_[share.turn];
  turn.push_back(std::move(record));
  share.turn += share.bytes / kTurnBytes;
  share.bytes %= kTurnBytes;
}

void WaitingRecords::put_back(std::deque<PendingRecord> records) {
  move_to(returned_, records.begin(), records.end());
  const auto place = [](const PendingRecord& pending) {
    return pending.record.ordinal == 0 ? UINT64_MAX : pending.record.ordinal;
  };
  std::ranges::stable_sort(returned_, {}, place);
}

template <typename Chosen>
void WaitingRecords::extract(std::deque<PendingRecord>& to, Chosen chosen) {
  const auto from = [&](std::deque<PendingRecord>& records) {
    const auto rest = std::ranges::stable_partition(
        records, [&](const PendingRecord& pending) { return !chosen(pending); });
    move_to(to, rest.begin(), rest.end());
    records.erase(rest.begin(), rest.end());
  };
  from(first_);
  from(returned_);
  from(now_);
  for (auto& [turn, records] : later_) from(records);
  std::erase_if(later_, [](const auto& each) { return each.second.empty(); });
  next_turn();
}

std::deque<PendingRecord> WaitingRecords::take_ordinary() {
  std::deque<PendingRecord> taken;
  extract(taken,
          [](const PendingRecord& pending) { return pending.urgency == Urgency::kOrdinary; });
  return taken;
}

std::deque<PendingRecord> WaitingRecords::take_all() {
  std::deque<PendingRecord> taken;
  extract(taken, [](const PendingRecord&) { return true; });
  return taken;
}

bool WaitingRecords::base_first() {
  std::deque<PendingRecord> base;
  extract(base, is_base);
  first_ = std::move(base);
  return !first_.empty();
}

}  // namespace mariner::logging
