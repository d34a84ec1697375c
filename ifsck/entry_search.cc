#include "ifsck/entry_search.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "ifsck/directory_entries.h"
#include "ifsck/each_once.h"

namespace mariner::ifsck {
namespace {

// Who may be a directory, below an inode's number and above it.
constexpr std::ptrdiff_t kBelow = 2;
constexpr std::ptrdiff_t kAbove = 1;

}  // namespace

Result<std::vector<InodeNumber>> EntrySearch::run(MendWork& work, Wanted wanted) {
  EntrySearch search(work, std::move(wanted));
  const auto beside = search.beside();
  if (!beside) return beside.error();
  if (const auto done = search.look_in(*beside); !done) return done.error();
  const std::uint64_t groups = work.layout().groups();
  for (std::uint64_t away = 0; away < groups && !search.wanted_.empty(); away = away * 2 + 1) {
    const auto some = search.in_groups(away);
    if (!some) return some.error();
    if (const auto done = search.look_in(*some); !done) return done.error();
  }
  if (!search.wanted_.empty()) {
    const auto all = search.possible();
    if (!all) return all.error();
    if (const auto done = search.look_in(**all); !done) return done.error();
  }
  sort_each_once(search.found_);
  return std::move(search.found_);
}

Result<std::vector<InodeNumber>> EntrySearch::beside() {
  std::vector<InodeNumber> some;
  std::vector<InodeNumber> likely;
  std::optional<GroupNumber> group;  // of these
  for (const auto& [number, names] : wanted_) {
    if (number == 0 || number > work_.layout().inodes()) continue;
    if (const GroupNumber its = work_.layout().group_of(number); group != its) {
      auto of_group = this->likely(its, its + 1);
      if (!of_group) return of_group.error();
      likely = std::move(*of_group);
      group = its;
    }
    const auto at = std::ranges::lower_bound(likely, number);
    std::copy(at - std::min(kBelow, at - likely.begin()), at + std::min(kAbove, likely.end() - at),
              std::back_inserter(some));
  }
  sort_each_once(some);
  return some;
}

Result<std::vector<InodeNumber>> EntrySearch::in_groups(std::uint64_t away) {
  std::vector<InodeNumber> some;
  std::uint64_t next = 0;  // all before are there, or too far away
  for (const auto& [number, names] : wanted_) {
    if (number == 0 || number > work_.layout().inodes()) continue;
    const std::uint64_t group = work_.layout().group_of(number);
    const std::uint64_t from = std::max(next, group - std::min(group, away));
    next = std::max(next, std::min<std::uint64_t>(group + away + 1, work_.layout().groups()));
    if (from >= next) continue;
    const auto those = likely(static_cast<GroupNumber>(from), static_cast<GroupNumber>(next));
    if (!those) return those.error();
    std::ranges::copy(*those, std::back_inserter(some));
  }
  return some;
}

Result<std::vector<InodeNumber>> EntrySearch::likely(GroupNumber first, GroupNumber end) {
  if (auto some = work_.likely_directories(first, end)) return std::move(*some);
  const auto all = possible();
  if (!all) return all.error();
  const auto first_of = [this](std::uint64_t group) {
    return group * work_.layout().inodes_per_group() + 1;
  };
  return std::vector<InodeNumber>(std::ranges::lower_bound(**all, first_of(first)),
                                  std::ranges::lower_bound(**all, first_of(end)));
}

Result<const std::vector<InodeNumber>*> EntrySearch::possible() {
  if (!possible_) {
    auto all = work_.possible_directories();
    if (!all) return all.error();
    possible_ = std::move(*all);
  }
  return &*possible_;
}

Result<void> EntrySearch::look_in(const std::vector<InodeNumber>& numbers) {
  std::vector<InodeNumber> some;
  std::ranges::copy_if(numbers, std::back_inserter(some),
                       [this](InodeNumber each) { return looked_.insert(each).second; });
  const auto directories = work_.directories_of(some);
  if (!directories) return directories.error();
  for (std::span<const InodeNumber> left(*directories); !left.empty();) {
    const auto next = left.first(std::min(left.size(), kDirectoriesAtOnce));
    left = left.subspan(next.size());
    const auto fetched = work_.prefetch_directories(next);
    if (!fetched) return fetched.error();
    for (const InodeNumber each : next) {
      if (const auto done = look_in(each); !done) return done;
    }
  }
  return {};
}

Result<void> EntrySearch::look_in(InodeNumber directory) {
  bool any = false;
  const auto looked = change_entries(work_, directory, [&](const PlacedEntry& entry) {
    const auto one = entry.dot == 0 ? wanted_.find(entry.inode) : wanted_.end();
    if (one != wanted_.end()) {
      any = true;
      if (one->second <= 1) {
        wanted_.erase(one);
      } else {
        --one->second;
      }
    }
    return std::optional<Named>();
  });
  if (!looked) return looked.error();
  if (any) found_.push_back(directory);
  return {};
}

}  // namespace mariner::ifsck
