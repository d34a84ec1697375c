// Names of iSCSI nodes (RFC 7143 4.2.7) as peers give them: at login, and in SCSI's TransportIDs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mariner {

// `name` as names are compared and kept: in lower case (4.2.7.2). Nothing if it is no name: empty,
// longer than 223 bytes, no UTF-8, or with control characters or blanks. What this returns may go
// into logs, lists of sessions and what is stored.
[[nodiscard]] std::optional<std::string> normalized_iscsi_name(std::string_view name);

}  // namespace mariner
