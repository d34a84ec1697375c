#include "uvfs/replay_history.h"

#include <algorithm>
#include <iterator>

#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::FsBlock;

namespace {

constexpr std::size_t kSweptMin = 16;

// Throws the older half away if it is before the front.
template <typename T, typename OrdinalOf>
void sweep(std::vector<T>& entries, std::uint64_t front, OrdinalOf ordinal_of) {
  const std::size_t half = entries.size() / 2;
  if (half < kSweptMin || ordinal_of(entries[half]) >= front) return;
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(half));
}

}  // namespace

void ReplayHistory::move_to(const Moment& moment) {
  CHECK(moments_.empty() || moment.at >= now_.at);
  if (moment.at == now_.at && !moments_.empty()) return;
  now_ = moment;
  now_is_kept_ = false;
  if (moments_.empty()) switches_.push_back({now(), false});
}

ReplayHistory::MomentIndex ReplayHistory::now() {
  if (!now_is_kept_) moments_.push_back(now_);
  now_is_kept_ = true;
  return static_cast<MomentIndex>(moments_.size() - 1);
}

// What the log says of it, if that is another thing than before.
void ReplayHistory::note(FsBlock number, Block& block) {
  Change change;
  if (!block.copies.empty()) {
    const Logged& newest = block.copies.back();
    const bool revoked = !block.revoked.empty() && block.revoked.back() >= newest.transaction;
    if (newest.transaction >= front_ && !revoked) {
      change = {0, newest.copy.from, newest.copy.escaped};
    }
  }
  const Change last = block.changes.empty() ? Change{} : block.changes.back();
  if (last.from == change.from && last.escaped == change.escaped) return;
  change.moment = now();
  if (!block.changes.empty() && last.moment == change.moment) {
    block.changes.back() = change;
    return;
  }
  block.changes.push_back(change);
  order_.emplace_back(change.moment, number);
}

void ReplayHistory::note_all(const LoggedTransaction& transaction) {
  for (const auto& each : transaction.copies) note(each.to, blocks_[each.to]);
  for (const FsBlock each : transaction.revoked) {
    if (const auto found = blocks_.find(each); found != blocks_.end()) note(each, found->second);
  }
}

ReplayHistory::Ordinal ReplayHistory::push_back(const LoggedTransaction& transaction) {
  const Ordinal ordinal = next_++;
  for (const auto& each : transaction.copies) {
    std::vector<Logged>& copies = blocks_[each.to].copies;
    sweep(copies, front_, [](const Logged& logged) { return logged.transaction; });
    copies.push_back({ordinal, {each.from, each.escaped}});
  }
  for (const FsBlock each : transaction.revoked) {
    // (What no copy is of needs no revocation; a copy that comes later is not of its time.)
    const auto found = blocks_.find(each);
    if (found == blocks_.end()) continue;
    sweep(found->second.revoked, front_, [](Ordinal revoked) { return revoked; });
    found->second.revoked.push_back(ordinal);
  }
  note_all(transaction);
  return ordinal;
}

void ReplayHistory::pop_front(const LoggedTransaction& transaction) {
  CHECK(front_ < next_);
  ++front_;
  note_all(transaction);
}

void ReplayHistory::pop_back(const LoggedTransaction& transaction) {
  CHECK(front_ < next_);
  --next_;
  for (const auto& each : transaction.copies) {
    std::vector<Logged>& copies = blocks_[each.to].copies;
    while (!copies.empty() && copies.back().transaction >= next_) copies.pop_back();
  }
  for (const FsBlock each : transaction.revoked) {
    const auto found = blocks_.find(each);
    if (found == blocks_.end()) continue;
    std::vector<Ordinal>& revoked = found->second.revoked;
    while (!revoked.empty() && revoked.back() >= next_) revoked.pop_back();
  }
  note_all(transaction);
}

void ReplayHistory::set_active(bool active) {
  if (switches_.back().active == active) return;
  if (switches_.back().moment != now()) switches_.push_back({now(), active});
  switches_.back().active = active;
}

void ReplayHistory::touch_all() {
  const bool active = switches_.back().active;
  if (switches_.back().moment != now()) switches_.push_back({now(), active});
}

bool ReplayHistory::is_revoked(FsBlock block, Ordinal transaction) const {
  const auto found = blocks_.find(block);
  return found != blocks_.end() && !found->second.revoked.empty() &&
         found->second.revoked.back() >= transaction;
}

void ReplayHistory::finish() {
  for (auto& [number, block] : blocks_) {
    block.copies = {};
    block.revoked = {};
    block.changes.shrink_to_fit();
  }
}

ReplayHistory::MomentIndex ReplayHistory::index_behind(SequenceNumber at) const {
  const auto found = std::ranges::upper_bound(moments_, at, {}, &Moment::at);
  return static_cast<MomentIndex>(found - moments_.begin());
}

const ReplayHistory::Change* ReplayHistory::change_before(const Block& block,
                                                          MomentIndex end) const {
  const auto found = std::ranges::lower_bound(block.changes, end, {}, &Change::moment);
  return found == block.changes.begin() ? nullptr : &*std::prev(found);
}

bool ReplayHistory::is_active(MomentIndex end) const {
  const auto found = std::ranges::lower_bound(switches_, end, {}, &Switch::moment);
  CHECK(found != switches_.begin());
  return std::prev(found)->active;
}

std::span<const ReplayHistory::Switch> ReplayHistory::switches(MomentIndex begin,
                                                               MomentIndex end) const {
  const auto first = std::ranges::lower_bound(switches_, begin, {}, &Switch::moment);
  return {first, std::ranges::lower_bound(first, switches_.end(), end, {}, &Switch::moment)};
}

std::optional<ReplayHistory::Copy> ReplayHistory::copy_of(FsBlock block, SequenceNumber at) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return std::nullopt;
  const MomentIndex end = index_behind(at);
  const Change* const change = change_before(found->second, end);
  if (change == nullptr || change->from == 0 || !is_active(end)) return std::nullopt;
  return Copy{change->from, change->escaped};
}

std::vector<ReplayHistory::Moment> ReplayHistory::changes_of(FsBlock block, SequenceNumber from,
                                                             SequenceNumber to) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {};
  const std::vector<Change>& changes = found->second.changes;
  const MomentIndex begin = index_behind(from);
  const MomentIndex end = index_behind(to);
  std::vector<MomentIndex> indexes;
  for (auto each = std::ranges::lower_bound(changes, begin, {}, &Change::moment);
       each != changes.end() && each->moment < end; ++each) {
    indexes.push_back(each->moment);
  }
  for (const Switch& each : switches(begin, end)) {
    const Change* const change = change_before(found->second, each.moment + 1);
    if (change != nullptr && change->from != 0) indexes.push_back(each.moment);
  }
  std::ranges::sort(indexes);
  const auto repeated = std::ranges::unique(indexes);
  indexes.erase(repeated.begin(), repeated.end());
  std::vector<Moment> out;
  std::ranges::transform(indexes, std::back_inserter(out),
                         [this](MomentIndex each) { return moments_[each]; });
  return out;
}

std::vector<FsBlock> ReplayHistory::changed(SequenceNumber from, SequenceNumber to) const {
  const MomentIndex begin = index_behind(from);
  const MomentIndex end = index_behind(to);
  std::vector<FsBlock> out;
  const auto moment_of = [](const auto& each) { return each.first; };
  for (auto each = std::ranges::lower_bound(order_, begin, {}, moment_of);
       each != order_.end() && each->first < end; ++each) {
    out.push_back(each->second);
  }
  if (switches(begin, end).empty()) return out;
  for (const auto& [number, block] : blocks_) {
    const Change* const change = change_before(block, begin);
    if (change != nullptr && change->from != 0) out.push_back(number);
  }
  return out;
}

}  // namespace mariner::uvfs
