#include "server/scsi/report_port_groups.h"

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::scsi {
namespace {

constexpr std::uint8_t kExtendedFormat = 0x10;
constexpr std::uint8_t kPreferred = 0x80;
// Which states can be: the bits beside the state.
constexpr std::uint8_t kTransitioningSupported = 0x80;
constexpr std::uint8_t kUnavailableSupported = 0x08;
constexpr std::uint8_t kStandbySupported = 0x04;
constexpr std::uint8_t kActiveNonOptimizedSupported = 0x02;
constexpr std::uint8_t kActiveOptimizedSupported = 0x01;
constexpr std::uint8_t kAllSupported = kTransitioningSupported | kUnavailableSupported |
                                       kStandbySupported | kActiveNonOptimizedSupported |
                                       kActiveOptimizedSupported;
constexpr std::uint8_t kAlteredImplicitly = 0x02;  // STATUS CODE
constexpr std::size_t kGroupBytes = 8;
constexpr std::size_t kPortBytes = 4;

}  // namespace

std::vector<std::uint8_t> report_port_groups(const ReportPortGroups& command,
                                             const PortGroupReport& report) {
  std::vector<std::uint8_t> data(command.extended ? 8 : 4);
  if (command.extended) {
    data[4] = kExtendedFormat;
    data[5] = report.transition_s;
  }
  for (const PortGroup& group : report.groups) {
    CHECK(group.ports.size() <= kTargetPortsMax);
    std::size_t at = data.size();
    data.resize(at + kGroupBytes + group.ports.size() * kPortBytes);
    data[at] = static_cast<std::uint8_t>((group.preferred ? kPreferred : 0) |
                                         static_cast<std::uint8_t>(group.state));
    data[at + 1] = report.changes ? kAllSupported : kActiveOptimizedSupported;
    store_be(&data[at + 2], group.id);
    data[at + 5] = report.changes ? kAlteredImplicitly : 0;
    data[at + 7] = static_cast<std::uint8_t>(group.ports.size());
    at += kGroupBytes;
    for (const std::uint16_t port : group.ports) {
      store_be(&data[at + 2], port);
      at += kPortBytes;
    }
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

}  // namespace mariner::scsi
