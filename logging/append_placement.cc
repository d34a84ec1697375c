#include "logging/append_placement.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::logging {

void AppendPlacement::start_track(SectorRange track, std::span<const SectorRange> used,
                                  Time /*now*/) {
  track_ = track;
  next_ = track.first;
  for (const SectorRange& range : used) {
    CHECK(track.contains(range));
    if (!range.empty()) next_ = std::max(next_, range.end());
  }
}

std::optional<Placement::Place> AppendPlacement::place(std::uint32_t sectors, Time now) const {
  CHECK(sectors > 0);
  if (sectors > room()) return std::nullopt;
  const Time begins = in_flight_ ? std::max(now, last_begun_ + write_time_) : now;
  return Place{next_, begins + write_time_};
}

std::uint32_t AppendPlacement::room() const {
  return static_cast<std::uint32_t>(track_.end() - next_);
}

void AppendPlacement::dispatched(SectorRange range, Time now) {
  CHECK(!range.empty() && range.first == next_ && track_.contains(range));
  last_begun_ = in_flight_ ? std::max(now, last_begun_ + write_time_) : now;
  last_ = range;
  next_ = range.end();
  in_flight_ = true;
}

void AppendPlacement::completed(SectorRange range, Time now) {
  // With more than one in flight, only the last one ends the waiting, and its beginning is an
  // estimate: nothing to learn from the others.
  if (!in_flight_ || range != last_) return;
  in_flight_ = false;
  // A disk that has hung once is not chosen less for ever: it would never show that it is well.
  const Time took =
      std::clamp(now - last_begun_, Time{0}, std::max(kOutlier * write_time_, kOutlierMin));
  write_time_ += (took - write_time_) / 8;
}

}  // namespace mariner::logging
