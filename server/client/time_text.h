// Moments as text: RFC 3339 with nanoseconds, in UTC and in local time.
#pragma once

#include <string>

#include "proto/units.h"
#include "server/client/zone.h"

namespace mariner {

// "2026-11-20T13:32:05.123456789Z".
[[nodiscard]] std::string format_utc(VersionTime time);

// "2026-11-20T14:32:05.123456789+01:00".
[[nodiscard]] std::string format_local(VersionTime time, const Zone& zone);

// "2026-11-20 14:32:05": for headings and tables, where the second is enough.
[[nodiscard]] std::string format_local_short(VersionTime time, const Zone& zone);

}  // namespace mariner
