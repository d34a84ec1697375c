// Which moments before the horizon stay: those that somebody wishes to keep, and those that are in
// use.
//
// Owner's thread only.
#pragma once

#include <vector>

#include "index/version_index.h"
#include "proto/units.h"

namespace mariner::volume {

class LoggedVolume;

// The moments that are to be kept beyond the window: views, marks, what is left of the past when it
// is thinned.
struct KeepWish {
  std::vector<index::IndexMoment> moments;  // that are known as such
  std::vector<VersionTime> times;           // the last write at or before each, ascending
};

// Whether a kept moment is what a time means.
[[nodiscard]] inline bool covers(const index::KeptMoment& kept, VersionTime time) {
  return kept.moment.time <= time && time <= kept.through;
}
// ... at least one of `times`, which ascend.
[[nodiscard]] bool is_one_of(const index::KeptMoment& kept, const std::vector<VersionTime>& times);

// Of those that are kept already, the ones that must stay. What a rollback goes back to is one, and
// what is being read.
[[nodiscard]] std::vector<index::KeptMoment> still_kept(LoggedVolume& volume, const KeepWish& wish);
[[nodiscard]] bool is_in_use(LoggedVolume& volume, const index::KeptMoment& kept);

}  // namespace mariner::volume
