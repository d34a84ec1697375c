// The moments of a volume that are offered to programs that list snapshots, as Samba's shadow_copy2
// does for Windows' "Previous Versions": any moment can be opened, but a list has to end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/units.h"

namespace mariner::uvfs {

inline constexpr std::size_t kSnapshotTimesMax = 256;

// In [oldest, newest], ascending: each five minutes of the last hour, each hour of the last two
// days, each day (UTC) of the last sixty, each week (from a Monday on) before; the newest
// kSnapshotTimesMax of them. All are whole ones, so that what is offered stays until it is thinned.
[[nodiscard]] std::vector<VersionTime> snapshot_times(VersionTime oldest, VersionTime newest);

// "@GMT-2026.11.20-14.32.05", as shadow_copy2 names one unless it is told otherwise: the first
// whole second at or behind the time.
[[nodiscard]] std::string snapshot_name(VersionTime time);
// Nothing: it is no such name.
[[nodiscard]] std::optional<VersionTime> parse_snapshot_name(std::string_view name);

}  // namespace mariner::uvfs
