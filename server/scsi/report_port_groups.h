// REPORT TARGET PORT GROUPS (SPC-4 6.37, 5.15): which ways to a logical unit are as good as which.
//
// Every portal leads to the same process, so all target ports are in one group of the state
// active/optimized, and no state ever changes. The support is said to be implicit (TPGS 01b) all
// the same: hosts then know that all ways are equal, instead of guessing from vendor tables
// (Linux's multipath groups the ways of an unknown device by failover, one at a time, but those of
// a device with port groups by priority, all together; ESXi claims it with its ALUA plugin).
// Explicit support would promise SET TARGET PORT GROUPS, with nothing to set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/scsi/cdb.h"

namespace mariner::scsi {

// The one group. A number of SCSI, not the tag of a portal group of iSCSI: those are the ports.
inline constexpr std::uint16_t kTargetPortGroup = 1;
// TPGS in the standard INQUIRY data, byte 5.
inline constexpr std::uint8_t kImplicitPortGroups = 0x10;
// TARGET PORT COUNT is one byte.
inline constexpr std::size_t kTargetPortsMax = 255;

// The answer, of full length. `target_ports`: relative target port identifiers.
[[nodiscard]] std::vector<std::uint8_t> report_port_groups(
    const ReportPortGroups& command, std::span<const std::uint16_t> target_ports);

}  // namespace mariner::scsi
