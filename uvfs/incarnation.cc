#include "uvfs/incarnation.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace mariner::uvfs {
namespace {

using State = ObjectHistory::State;

// The states at which an operation was under way: true for those that are no versions.
std::vector<bool> under_way(std::span<const State> states, const VersionRule& rule) {
  std::vector<bool> passing(states.size());
  const auto within = [&](std::size_t i, std::size_t j) {
    return states[j].time.ns - states[i].time.ns <=
           static_cast<std::uint64_t>(rule.under_way_max.count());
  };
  for (std::size_t i = 0; i + 1 < states.size(); ++i) {
    const bool looks_otherwise = !states[i].object.looks_like(states[i + 1].object);
    if (states[i].object.changed == states[i + 1].object.changed && looks_otherwise) {
      // The inode is being written in parts.
      passing[i] = within(i, i + 1);
    }
  }
  for (std::size_t i = 1; i < states.size(); ++i) {
    // Contents alone: the inode that says so comes later, or never.
    if (states[i].object.changed != states[i - 1].object.changed ||
        !states[i].object.looks_like(states[i - 1].object)) {
      continue;
    }
    const auto next = std::find_if(
        states.begin() + static_cast<std::ptrdiff_t>(i), states.end(),
        [&](const State& each) { return each.object.changed != states[i].object.changed; });
    if (next != states.end()) {
      passing[i] = within(i, static_cast<std::size_t>(next - states.begin()));
    }
  }
  return passing;
}

}  // namespace

std::vector<FileVersion> versions_of(const ObjectHistory& history, const Instant& from,
                                     SequenceNumber end, const VersionRule& rule) {
  const auto& all = history.states;
  auto first = std::ranges::upper_bound(all, from.at, {}, &State::from);
  if (first != all.begin()) --first;
  const auto last = std::ranges::lower_bound(first, all.end(), end, {}, &State::from);
  const std::span<const State> states(first, last);
  std::vector<bool> passing(states.size());
  if (!rule.every_write) passing = under_way(states, rule);
  std::vector<FileVersion> versions;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (passing[i]) continue;
    if (!versions.empty()) versions.back().end = states[i].from;
    const bool earlier = states[i].from < from.at;
    versions.push_back({.from = earlier ? from : Instant{states[i].from, states[i].time},
                        .end = end,
                        .object = states[i].object});
  }
  return versions;
}

}  // namespace mariner::uvfs
