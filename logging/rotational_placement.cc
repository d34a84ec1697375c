#include "logging/rotational_placement.h"

#include <algorithm>
#include <limits>

#include "proto/check.h"

namespace mariner::logging {

RotationalPlacement::RotationalPlacement(const Options& options) : options_(options) {
  CHECK(options.rotation.count() > 0);
  CHECK(options.t_switch > 0);
}

void RotationalPlacement::start_track(SectorRange track, std::span<const SectorRange> used,
                                      Time now) {
  // On the next track the sector of the same number comes by one skew later: the angle stays.
  if (track_.empty() || track.first != track_.end()) index_.reset();
  track_ = track;
  switching_ = true;
  last_access_ = now;
  in_flight_.reset();
  used_.clear();
  used_sectors_ = 0;
  writes_ = 0;
  for (const SectorRange& range : used) occupy(range);
}

// Calls visit(gap) for each free extent, ascending.
template <typename Visit>
void RotationalPlacement::each_gap(Visit visit) const {
  std::uint32_t begin = 0;
  for (const Extent& used : used_) {
    if (used.begin > begin) visit(Extent{begin, used.begin});
    begin = used.end;
  }
  if (begin < track_.count) visit(Extent{begin, track_.count});
}

RotationalPlacement::Extent RotationalPlacement::extent_of(SectorRange range) const {
  CHECK(track_.contains(range));
  const auto begin = static_cast<std::uint32_t>(range.first - track_.first);
  return {begin, begin + range.count};
}

void RotationalPlacement::occupy(SectorRange range) {
  if (range.empty()) return;
  Extent whole = extent_of(range);
  // Those that it touches become one with it.
  const auto from = std::ranges::lower_bound(used_, whole.begin, {}, &Extent::end);
  auto to = from;
  for (; to != used_.end() && to->begin <= whole.end; ++to) {
    CHECK_MSG(to->end == whole.begin || to->begin == whole.end, "a sector is used twice");
    whole = {std::min(whole.begin, to->begin), std::max(whole.end, to->end)};
  }
  used_.insert(used_.erase(from, to), whole);
  used_sectors_ += range.count;
  ++writes_;
}

Placement::Time RotationalPlacement::time_of(std::uint64_t sectors) const {
  return options_.rotation * static_cast<Time::rep>(sectors) / static_cast<Time::rep>(track_.count);
}

// Formula 4.1. Behind a batch in flight, the head stands where that one is predicted to end.
RotationalPlacement::Reach RotationalPlacement::reach(Time now) const {
  const Time dispatched = in_flight_ ? std::max(now, in_flight_->done) : now;
  const Time from = dispatched + options_.command_delay;
  const Time skewed = switching_ ? options_.track_skew : Time{0};
  // Of a head that may be anywhere, expect half a revolution.
  if (!index_) return {0, from + skewed + options_.rotation / 2};
  Time phase = (from - *index_) % options_.rotation;
  if (phase < Time{0}) phase += options_.rotation;
  // The next sector to begin under the head: of the one that has begun, part is gone.
  const Time turned = phase * static_cast<Time::rep>(track_.count);
  const auto under =
      static_cast<std::uint64_t>((turned + options_.rotation - Time{1}) / options_.rotation);
  const std::uint64_t first = under + options_.look_ahead_sectors;
  return {static_cast<std::uint32_t>(first % track_.count),
          from + skewed + (time_of(first) - phase)};
}

Placement::Time RotationalPlacement::end_of(Extent extent, Time now) const {
  const Reach reached = reach(now);
  const std::uint32_t between = (extent.begin + track_.count - reached.offset) % track_.count;
  return reached.at + time_of(std::uint64_t{between} + (extent.end - extent.begin));
}

std::optional<Placement::Place> RotationalPlacement::place(std::uint32_t sectors, Time now) const {
  CHECK(sectors > 0);
  if (track_.empty()) return std::nullopt;
  const std::uint32_t reached = reach(now).offset;
  std::optional<std::uint32_t> best;
  std::uint32_t best_wait = 0;
  each_gap([&](Extent gap) {
    if (gap.end - gap.begin < sectors) return;
    const bool inside = reached >= gap.begin && reached <= gap.end - sectors;
    const std::uint32_t begin = inside ? reached : gap.begin;
    const std::uint32_t wait = (begin + track_.count - reached) % track_.count;
    if (best && wait >= best_wait) return;
    best = begin;
    best_wait = wait;
  });
  if (!best) return std::nullopt;
  return Place{track_.first + *best, end_of({*best, *best + sectors}, now)};
}

std::uint32_t RotationalPlacement::room() const {
  std::uint32_t longest = 0;
  each_gap([&](Extent gap) { longest = std::max(longest, gap.end - gap.begin); });
  return longest;
}

void RotationalPlacement::dispatched(SectorRange range, Time now) {
  CHECK(!range.empty());
  const Time done = end_of(extent_of(range), now);
  occupy(range);
  in_flight_ = {range, done};
  last_access_ = now;
}

void RotationalPlacement::completed(SectorRange range, Time now) {
  last_access_ = now;
  if (in_flight_ && in_flight_->range == range) in_flight_.reset();
  // A batch of the track before this one may end late: it says nothing about this one.
  if (range.empty() || !track_.contains(range)) return;
  index_ = now - time_of(extent_of(range).end);
  switching_ = false;
}

double RotationalPlacement::utilization() const {
  return track_.empty() ? 0.0 : static_cast<double>(used_sectors_) / track_.count;
}

double RotationalPlacement::fragmentation() const {
  if (used_sectors_ == track_.count) return std::numeric_limits<double>::infinity();
  return writes_ / (10.0 * (1.0 - utilization()));
}

bool RotationalPlacement::wants_next_track() const { return fragmentation() > options_.t_switch; }

std::optional<Placement::Time> RotationalPlacement::recalibration_due() const {
  if (track_.empty() || options_.t_idle == Time{0}) return std::nullopt;
  return index_ && !switching_ ? last_access_ + options_.t_idle : last_access_;
}

std::optional<std::uint64_t> RotationalPlacement::recalibration_sector(Time now) const {
  if (track_.empty()) return std::nullopt;
  return track_.first + reach(now).offset;
}

}  // namespace mariner::logging
