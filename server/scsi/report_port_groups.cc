#include "server/scsi/report_port_groups.h"

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::scsi {

std::vector<std::uint8_t> report_port_groups(const ReportPortGroups& command,
                                             std::span<const std::uint16_t> target_ports) {
  constexpr std::uint8_t kExtendedFormat = 0x10;
  constexpr std::uint8_t kActiveOptimized = 0x00;
  constexpr std::uint8_t kActiveOptimizedSupported = 0x01;
  constexpr std::size_t kGroupBytes = 8;
  constexpr std::size_t kPortBytes = 4;
  CHECK(target_ports.size() <= kTargetPortsMax);
  std::vector<std::uint8_t> data(command.extended ? 8 : 4);
  // No state changes, so no time for that is advised (byte 5: 0).
  if (command.extended) data[4] = kExtendedFormat;
  std::size_t at = data.size();
  data.resize(at + kGroupBytes + target_ports.size() * kPortBytes);
  data[at] = kActiveOptimized;
  data[at + 1] = kActiveOptimizedSupported;
  store_be(&data[at + 2], kTargetPortGroup);
  data[at + 7] = static_cast<std::uint8_t>(target_ports.size());
  at += kGroupBytes;
  for (const std::uint16_t port : target_ports) {
    store_be(&data[at + 2], port);
    at += kPortBytes;
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

}  // namespace mariner::scsi
