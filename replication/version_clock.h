// Where version times come from: strictly increasing, whatever the wall clock does.
//
// Each volume has one of its own, or shares one with others whose moments are to be common: of two
// writes, whichever was answered before the other one was sent then has the lower version time,
// whatever volumes they are to. One thread only.
#pragma once

#include <algorithm>

#include "proto/units.h"

namespace mariner::replication {

class VersionClock {
 public:
  // Above all that were given before; the wall clock's `now`, if that is.
  VersionTime next(VersionTime now) {
    last_ = std::max(now, VersionTime{last_.ns + 1});
    return last_;
  }
  // No time at or below `time` is given any more.
  void raise(VersionTime time) { last_ = std::max(last_, time); }
  // Every time to come is above.
  [[nodiscard]] VersionTime last() const { return last_; }

 private:
  VersionTime last_;
};

}  // namespace mariner::replication
