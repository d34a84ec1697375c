#include "server/volume/pending_table.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

std::uint64_t PendingTable::cost_of(const Entry& entry) {
  return entry.content.kind == PendingContent::Kind::kZero ? kBlockBytes : entry.count.bytes();
}

std::uint64_t PendingTable::stored_bytes(const Entry& entry) {
  if (entry.content.kind != PendingContent::Kind::kMemory) return 0;
  return entry.content.repeated ? kBlockBytes : entry.count.bytes();
}

std::uint64_t PendingTable::history_bytes(const Entry& entry) {
  return entry.content.kind == PendingContent::Kind::kHistory ? entry.count.bytes() : 0;
}

void PendingTable::count(const Entry& entry) {
  cost_bytes_ += cost_of(entry);
  history_bytes_ += history_bytes(entry);
  memory_bytes_ += stored_bytes(entry);
}

// Other runs may hold the same payload, unless all of it belongs to this one.
void PendingTable::uncount(const Entry& entry) {
  cost_bytes_ -= cost_of(entry);
  history_bytes_ -= history_bytes(entry);
  const std::uint64_t stored = stored_bytes(entry);
  if (stored == entry.content.payload.size()) memory_bytes_ -= stored;
}

void PendingTable::erase(Runs::iterator first, Runs::iterator last) {
  for (auto it = first; it != last; ++it) uncount(it->second);
  runs_.erase(first, last);
}

// Makes `lbn` the start of a run if a run covers it.
void PendingTable::split_at(Lbn lbn) {
  auto it = runs_.upper_bound(lbn);
  if (it == runs_.begin()) return;
  --it;
  if (it->first == lbn || it->first + it->second.count <= lbn) return;
  const BlockCount head = lbn - it->first;
  Entry tail{it->second.count - head, it->second.content.advanced(head)};
  cost_bytes_ -= cost_of(it->second);
  it->second.count = head;
  cost_bytes_ += cost_of(it->second) + cost_of(tail);
  // Both halves of a repeated run hold all of its payload, and each is counted.
  if (stored_bytes(tail) == tail.content.payload.size()) memory_bytes_ += stored_bytes(tail);
  runs_.emplace_hint(std::next(it), lbn, std::move(tail));
}

bool PendingTable::nothing_pending(BlockRange range, Runs::iterator next) {
  if (next != runs_.end() && next->first < range.end()) return false;
  if (next == runs_.begin()) return true;
  const auto before = std::prev(next);
  return before->first + before->second.count <= range.first;
}

void PendingTable::put(BlockRange range, PendingContent content) {
  CHECK(!range.empty());
  auto it = runs_.lower_bound(range.first);
  // The usual cases: none of the blocks is pending, or the very same ones are overwritten.
  if (nothing_pending(range, it)) {
    count(runs_.emplace_hint(it, range.first, Entry{range.count, std::move(content)})->second);
    return;
  }
  if (it != runs_.end() && it->first == range.first && it->second.count == range.count) {
    uncount(it->second);
    it->second.content = std::move(content);
    count(it->second);
    return;
  }
  split_at(range.first);
  split_at(range.end());
  it = runs_.lower_bound(range.first);
  auto last = it;
  while (last != runs_.end() && last->first < range.end()) ++last;
  erase(it, last);
  it = runs_.emplace_hint(last, range.first, Entry{range.count, std::move(content)});
  count(it->second);
}

void PendingTable::put_each(std::span<const BlockRange> ranges, const PendingContent& content) {
  auto next = ranges.empty() ? runs_.end() : runs_.lower_bound(ranges.front().first);
  for (const BlockRange& range : ranges) {
    if (nothing_pending(range, next)) {
      count(runs_.emplace_hint(next, range.first, Entry{range.count, content})->second);
    } else {
      put(range, content);
      next = runs_.upper_bound(range.first);
    }
  }
}

std::vector<BlockRange> PendingTable::erase_before(Lbn end, std::size_t runs_max) {
  split_at(end);
  std::vector<BlockRange> gone;
  const auto first = runs_.begin();
  auto last = first;
  for (; last != runs_.end() && last->first < end && gone.size() < runs_max; ++last) {
    gone.push_back({last->first, last->second.count});
    last->second.content.payload.prefetch();
  }
  erase(first, last);
  return gone;
}

void PendingTable::erase(BlockRange range) {
  if (runs_.empty()) return;
  split_at(range.first);
  split_at(range.end());
  erase(runs_.lower_bound(range.first), runs_.lower_bound(range.end()));
}

void PendingTable::erase_each(std::span<const BlockRange> ranges) {
  for (const BlockRange& range : ranges) erase(range);
}

void PendingTable::visit(
    BlockRange range, const std::function<void(BlockRange, const PendingContent*)>& visitor) const {
  Lbn at = range.first;
  auto it = runs_.upper_bound(at);
  if (it != runs_.begin() && std::prev(it)->first + std::prev(it)->second.count > at) --it;
  while (at < range.end()) {
    if (it == runs_.end() || it->first >= range.end()) {
      visitor(BlockRange::between(at, range.end()), nullptr);
      return;
    }
    if (it->first > at) {
      visitor(BlockRange::between(at, it->first), nullptr);
      at = it->first;
    }
    const Lbn end = std::min(it->first + it->second.count, range.end());
    if (at == it->first) {
      visitor(BlockRange::between(at, end), &it->second.content);
    } else {
      const PendingContent inside = it->second.content.advanced(at - it->first);
      visitor(BlockRange::between(at, end), &inside);
    }
    at = end;
    ++it;
  }
}

PendingTable::Run PendingTable::next_run(Lbn from) const {
  auto it = runs_.upper_bound(from);
  if (it != runs_.end()) it->second.content.payload.prefetch();  // whoever walks comes to it next
  if (it != runs_.begin() && std::prev(it)->first + std::prev(it)->second.count > from) {
    --it;
    const BlockCount skip = from - it->first;
    return {BlockRange::between(from, it->first + it->second.count),
            it->second.content.advanced(skip)};
  }
  if (it == runs_.end()) return {};
  return {{it->first, it->second.count}, it->second.content};
}

}  // namespace mariner::volume
