// Who a logical unit says it is: everything that INQUIRY tells about it, given by the node.
//
// Identities must be unique and stable per volume and per view: multipath software merges two
// disks whose identities are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mariner::scsi {

struct Identity {
  std::string target_name;  // iSCSI name of the target, at most 223 bytes (RFC 7143 4.2.7.1)
  // The device's target ports: relative target port identifiers, ascending, at least one. A target
  // port is a portal group (RFC 7143 4.4.3.1), and its identifier is the group's tag.
  std::vector<std::uint16_t> target_ports{1};
  std::string volume_name;         // part of the T10 vendor ID designator
  std::string serial;              // unit serial number, printable ASCII, at most 64 bytes
  std::vector<std::uint8_t> naa;   // 8 bytes (NAA 3h, locally assigned) or 16 bytes (NAA 6h)
  std::string vendor = "MARINER";  // 8 bytes of ASCII at most
  std::string product = "VOLUME";  // 16 bytes at most: "VOLUME" or "VIEW"
  std::string revision = "0001";   // 4 bytes at most
};

}  // namespace mariner::scsi
