// What is left of a volume's past behind its protection window: one moment an hour, a day, a week,
// a month or a year, for so many of each. Pure values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner {

struct Retention {
  static constexpr unsigned kMomentsMax = 1000;  // in all

  unsigned hourly = 0;
  unsigned daily = 0;
  unsigned weekly = 0;
  unsigned monthly = 0;
  unsigned yearly = 0;

  [[nodiscard]] bool none() const { return *this == Retention{}; }
  friend bool operator==(const Retention&, const Retention&) = default;
};

// "hourly=24, daily=30, weekly=8, monthly=12, yearly=3", any of them in any order; or "none".
// kInvalidArgument says what was expected.
Result<Retention> parse_retention(std::string_view text);
// The same again: parse_retention() takes it.
std::string retention_text(const Retention& retention);

// A moment that a retention keeps: what the volume held at that time.
struct RetainedTime {
  VersionTime time;
  const char* period = "";  // the longest that ends then: "hourly", "daily", ...
  // Where the shortest period that ends then begins: any moment behind that may stand for it.
  VersionTime after{};
  friend bool operator==(const RetainedTime&, const RetainedTime&) = default;
};
// Those that it keeps at `now`, ascending: the ends of the last hours, days, weeks (on Mondays),
// months and years, in UTC.
std::vector<RetainedTime> retained_times(const Retention& retention, VersionTime now);

}  // namespace mariner
