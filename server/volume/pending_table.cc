#include "server/volume/pending_table.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

// Makes `lbn` the start of a run if a run covers it.
void PendingTable::split_at(Lbn lbn) {
  auto it = runs_.upper_bound(lbn);
  if (it == runs_.begin()) return;
  --it;
  if (it->first == lbn || it->first + it->second.count <= lbn) return;
  const BlockCount head = lbn - it->first;
  Entry tail{it->second.count - head, it->second.content.advanced(head)};
  it->second.count = head;
  runs_.emplace_hint(std::next(it), lbn, std::move(tail));
}

void PendingTable::put(BlockRange range, PendingContent content) {
  CHECK(!range.empty());
  auto it = runs_.lower_bound(range.first);
  // The usual case: the very same blocks are overwritten, or none of them is pending.
  if (it != runs_.end() && it->first == range.first && it->second.count == range.count) {
    it->second.content = std::move(content);
    return;
  }
  split_at(range.first);
  split_at(range.end());
  it = runs_.lower_bound(range.first);
  while (it != runs_.end() && it->first < range.end()) it = runs_.erase(it);
  runs_.emplace_hint(it, range.first, Entry{range.count, std::move(content)});
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
