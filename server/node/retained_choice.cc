#include "server/node/retained_choice.h"

#include <algorithm>
#include <ranges>

#include "server/volume/kept_choice.h"

namespace mariner::node {
namespace {

using index::IndexMoment;
using index::KeptMoment;

bool is_within(VersionTime time, const RetainedTime& period) {
  return time > period.after && time <= period.time;
}

RetainedChoice choose(const RetainedTime& asked, const RetainedPast& past) {
  RetainedChoice choice{asked};
  const auto is_open = [&](const IndexMoment& moment) {
    return moment.sequence >= past.oldest.sequence ||
           std::ranges::binary_search(past.kept, moment.sequence, {},
                                      [](const KeptMoment& each) { return each.moment.sequence; });
  };
  const auto end = std::ranges::upper_bound(past.clean, asked.time, {}, &IndexMoment::time);
  for (auto each = end; each != past.clean.begin();) {
    --each;
    if (!is_within(each->time, asked)) break;
    if (each->sequence.value == 0 || !is_open(*each)) continue;
    choice.moment = *each;
    choice.clean = true;
    return choice;
  }
  const bool passed = asked.time < past.oldest.time;
  const bool is_kept = std::ranges::any_of(
      past.kept, [&](const KeptMoment& each) { return volume::covers(each, asked.time); });
  if (!passed || is_kept) return choice;
  for (const KeptMoment& each : past.kept | std::views::reverse) {
    if (!is_within(each.moment.time, asked)) continue;
    choice.moment = each.moment;
    break;
  }
  return choice;
}

}  // namespace

std::vector<RetainedChoice> choose_retained(const std::vector<RetainedTime>& times,
                                            const RetainedPast& past) {
  std::vector<RetainedChoice> out;
  out.reserve(times.size());
  for (const RetainedTime& asked : times) out.push_back(choose(asked, past));
  return out;
}

bool stands_for(const KeptMoment& kept, const RetainedChoice& choice) {
  if (choice.moment) return kept.moment.sequence == choice.moment->sequence;
  return volume::covers(kept, choice.asked.time);
}

}  // namespace mariner::node
