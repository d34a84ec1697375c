#include "uvfs/name_history.h"

#include <algorithm>
#include <iterator>

#include "ifsck/directory_block.h"
#include "proto/check.h"

namespace mariner::uvfs {

void NameHistory::set(const Instant& at, std::uint64_t logical, std::span<const std::byte> block) {
  std::vector<Entry> entries;
  const bool whole = ifsck::for_each_entry(block, [&](const ifsck::DirectoryEntry& each) {
    if (each.inode == 0 || each.name.empty() || each.name == "." || each.name == "..") return;
    entries.emplace_back(each.name, each.inode);
  });
  damaged_ = damaged_ || !whole;
  replace(at, logical, std::move(entries));
}

void NameHistory::set_all(const Instant& at, std::vector<Entry> entries, bool whole) {
  damaged_ = damaged_ || !whole;
  replace(at, 0, std::move(entries));
}

void NameHistory::forget(const Instant& at, std::uint64_t logical) { replace(at, logical, {}); }

void NameHistory::forget_all(const Instant& at) {
  std::vector<std::uint64_t> all;
  for (const auto& [logical, entries] : blocks_) all.push_back(logical);
  for (const std::uint64_t each : all) replace(at, each, {});
}

void NameHistory::replace(const Instant& at, std::uint64_t logical, std::vector<Entry> entries) {
  CHECK(!first_ || last_ <= at.at);
  if (!first_) first_ = at.at;
  last_ = at.at;
  std::ranges::stable_sort(entries, {}, &Entry::first);
  const auto repeated = std::ranges::unique(entries, {}, &Entry::first);
  entries.erase(repeated.begin(), repeated.end());
  std::vector<Entry>& before = blocks_[logical];
  auto was = before.begin();
  auto is = entries.begin();
  while (was != before.end() || is != entries.end()) {
    const bool gone = is == entries.end() || (was != before.end() && was->first < is->first);
    const bool came = was == before.end() || (is != entries.end() && is->first < was->first);
    if (gone || came || was->second != is->second) {
      Name& name = names_[gone ? was->first : is->first];
      if (gone) {
        name.holders.erase(logical);
      } else {
        name.holders[logical] = is->second;
      }
      settle(at, name);
    }
    if (!came) ++was;
    if (!gone) ++is;
  }
  if (entries.empty()) {
    blocks_.erase(logical);
  } else {
    before = std::move(entries);
  }
}

void NameHistory::settle(const Instant& at, Name& name) {
  const ObjectNumber inode = name.holders.empty() ? 0 : name.holders.begin()->second;
  std::vector<Span>& spans = name.spans;
  if (!spans.empty() && spans.back().from.at == at.at) spans.pop_back();
  const ObjectNumber before = spans.empty() ? 0 : spans.back().inode;
  if (before != inode) spans.push_back({at, inode});
}

const std::vector<NameHistory::Span>* NameHistory::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() || found->second.spans.empty() ? nullptr : &found->second.spans;
}

ObjectNumber NameHistory::find(std::string_view name, SequenceNumber at) const {
  const std::vector<Span>* const spans = find(name);
  if (spans == nullptr) return 0;
  const auto behind =
      std::ranges::upper_bound(*spans, at, {}, [](const Span& each) { return each.from.at; });
  return behind == spans->begin() ? 0 : std::prev(behind)->inode;
}

std::vector<Instant> NameHistory::changes() const {
  std::vector<Instant> all;
  for (const auto& [name, one] : names_) {
    for (const Span& each : one.spans) {
      if (each.from.at > *first_) all.push_back(each.from);
    }
  }
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

}  // namespace mariner::uvfs
