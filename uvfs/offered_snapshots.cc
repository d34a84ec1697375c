#include "uvfs/offered_snapshots.h"

#include <algorithm>

#include "uvfs/snapshot_times.h"

namespace mariner::uvfs {

using ifsck::Past;
using Moments = std::map<std::string, SequenceNumber>;

Result<Moments> offered_snapshots(Past& past, std::span<const Mark> marks) {
  const auto reach = past.reach();
  if (!reach) return reach.error();
  // (Before the first write there is nothing to see.)
  const auto oldest = past.time_of(std::max(reach->oldest, SequenceNumber{1}));
  if (!oldest) return oldest.error();
  const auto newest = past.time_of(reach->newest);
  if (!newest) return newest.error();
  Moments all;
  for (const VersionTime each : snapshot_times(*oldest, *newest)) {
    const auto at = past.moment_of(each);
    // (The window moves on.)
    if (!at && at.error().code == ErrorCode::kOutsideWindow) continue;
    if (!at) return at.error();
    all.emplace(snapshot_name(each), *at);
  }
  for (const Mark& each : marks) {
    const auto time = past.time_of(each.at);
    if (!time) return time.error();
    all[snapshot_name(*time)] = each.at;
  }
  // (Ascending by name is ascending by time.)
  SequenceNumber before;
  bool first = true;
  std::erase_if(all, [&](const auto& each) {
    if (each.second < reach->oldest || (!first && each.second == before)) return true;
    before = each.second;
    first = false;
    return false;
  });
  return all;
}

Result<SequenceNumber> snapshot_moment(Past& past, std::span<const Mark> marks,
                                       std::string_view name) {
  const auto no_such = [&] { return Error{ErrorCode::kNotFound, std::string(name)}; };
  const auto time = parse_snapshot_name(name);
  if (!time) return no_such();
  for (const Mark& each : marks) {
    const auto marked = past.time_of(each.at);
    if (!marked) return marked.error();
    if (snapshot_name(*marked) == name) return each.at;
  }
  const auto reach = past.reach();
  if (!reach) return reach.error();
  // (What is still to come would be another moment every time.)
  const auto newest = past.time_of(reach->newest);
  if (!newest) return newest.error();
  if (*time > *newest) return no_such();
  return past.moment_of(*time);
}

}  // namespace mariner::uvfs
