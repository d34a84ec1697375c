// REPORT TARGET PORT GROUPS (SPC-4 6.37, 5.15): which ways to a logical unit are as good as which.
//
// Of a unit that one process serves every portal leads to that process, so all target ports are in
// one group of the state active/optimized, and no state ever changes. The support is said to be
// implicit (TPGS 01b) all the same: hosts then know that all ways are equal, instead of guessing
// from vendor tables (Linux's multipath groups the ways of an unknown device by failover, one at a
// time, but those of a device with port groups by priority, all together; ESXi claims it with its
// ALUA plugin). Explicit support would promise SET TARGET PORT GROUPS: with one process there is
// nothing to set, and with several the nodes elect who coordinates.
#pragma once

#include <cstdint>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/unit_access.h"

namespace mariner::scsi {

// TPGS in the standard INQUIRY data, byte 5.
inline constexpr std::uint8_t kImplicitPortGroups = 0x10;

// The answer, of full length.
[[nodiscard]] std::vector<std::uint8_t> report_port_groups(const ReportPortGroups& command,
                                                           const PortGroupReport& report);

}  // namespace mariner::scsi
