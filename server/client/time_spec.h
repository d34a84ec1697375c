// Moments as people write them: every form of a TIME on the command line.
//
//   2026-11-20T14:32:05.123456789+01:00   RFC 3339, also with Z, and with a space instead of the T
//   2026-11-20 14:32:05[.123456789]       local time; refused if a clock change makes it ambiguous
//   14:32[:05[.5]]                        the last moment at which local clocks showed this
//   -10m, -1h30m                          that long before now
//   10 minutes ago
//   yesterday                             the beginning of the local day before today
//   now
//   mark:NAME
//   #SEQ                                  a sequence number
//
// A time means the last write at or before it. Nothing is rounded: times are exact to the
// nanosecond.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "proto/error.h"
#include "proto/units.h"
#include "server/client/zone.h"

namespace mariner {

struct MarkName {
  std::string value;
  friend auto operator<=>(const MarkName&, const MarkName&) = default;
};

// Whatever is the newest when the daemon is asked.
struct Now {
  friend auto operator<=>(const Now&, const Now&) = default;
};

using TimeSpec = std::variant<VersionTime, SequenceNumber, MarkName, Now>;

// What relative and local times refer to.
struct TimeContext {
  VersionTime now;
  const Zone& zone;
};

// kInvalidArgument: not one of the forms above, a date that does not exist, a local time that the
// clocks skip or show twice (the message gives both readings), before 1970 or after 2554.
[[nodiscard]] Result<TimeSpec> parse_time(std::string_view text, const TimeContext& context);

// OBJECT[@TIME], split at the first '@': names hold none, mark names might.
struct ObjectAtTime {
  std::string object;
  std::optional<std::string> time;
};
[[nodiscard]] ObjectAtTime split_object(std::string_view text);

}  // namespace mariner
