// The time by which windows move on: the wall clock's, but for a step ahead, which is believed only
// when it has lasted. A clock that is a day ahead for a second, as a virtual machine's may be
// before it is synchronised, must not cost a day of history, which cannot be given back.
//
// A value. Steps back count at once: they only keep more.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "proto/units.h"

namespace mariner::node {

class BelievedTime {
 public:
  static constexpr std::chrono::nanoseconds kTolerance = std::chrono::seconds(1);
  static constexpr std::chrono::nanoseconds kLasting = std::chrono::minutes(2);

  // `wall` and `monotonic` are of now; the more often it is asked, the surer a step is seen.
  // `at_once`: a step is believed, too, because there is no time to wait.
  VersionTime at(VersionTime wall, std::chrono::nanoseconds monotonic, bool at_once = false) {
    VersionTime now = wall;
    if (last_) {
      const auto passed = monotonic - std::exchange(last_monotonic_, monotonic);
      const VersionTime expected{last_->ns + static_cast<std::uint64_t>(passed.count())};
      const bool ahead = wall.ns > expected.ns + static_cast<std::uint64_t>(kTolerance.count());
      if (!ahead) doubted_since_.reset();
      if (ahead && !doubted_since_) doubted_since_ = monotonic;
      if (ahead && !at_once && monotonic - *doubted_since_ < kLasting) now = expected;
      if (now == wall) doubted_since_.reset();
    }
    last_monotonic_ = monotonic;
    last_ = now;
    return now;
  }

 private:
  std::optional<VersionTime> last_;  // what was said
  std::chrono::nanoseconds last_monotonic_{0};
  std::optional<std::chrono::nanoseconds> doubted_since_;
};

}  // namespace mariner::node
