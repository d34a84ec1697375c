#include "server/node/cluster_port_groups.h"

#include <algorithm>

#include "server/node/front.h"

namespace mariner::node {

using scsi::AccessState;

std::vector<std::uint16_t> ClusterPortGroups::ports() const {
  std::vector<std::uint16_t> ports;
  for (const std::uint32_t node : nodes_.all) ports.push_back(portal_group_tag(1, node));
  std::ranges::sort(ports);
  return ports;
}

AccessState ClusterPortGroups::own_state() const {
  using State = cluster::TargetPart::State;
  if (target_ == nullptr) return AccessState::kTransitioning;
  switch (target_->state()) {
    case State::kServing: return AccessState::kActiveOptimized;
    case State::kStandby:
      return nodes_.redirect ? AccessState::kTransitioning : AccessState::kStandby;
    case State::kTransitioning: break;
  }
  return AccessState::kTransitioning;
}

std::vector<scsi::PortGroup> ClusterPortGroups::groups() const {
  const AccessState own = own_state();
  const auto record = directory_.record(nodes_.volume);
  std::vector<scsi::PortGroup> groups;
  for (const std::uint32_t node : nodes_.all) {
    scsi::PortGroup group;
    group.id = static_cast<std::uint16_t>(node);
    group.ports = {portal_group_tag(1, node)};
    if (node == nodes_.self.value) {
      group.state = own;
    } else if (own == AccessState::kTransitioning) {
      // Nobody is told that no way is good: that might be believed for good.
      group.state = AccessState::kTransitioning;
    } else {
      const bool active =
          own == AccessState::kStandby && record && record->coordinator.value == node;
      group.state = active ? AccessState::kActiveOptimized : AccessState::kStandby;
    }
    // In standby nobody is: multipath-tools go to a preferred group before an active one, again and
    // again, although it refuses them each time.
    group.preferred = node == nodes_.all.front() && scsi::is_active(group.state);
    groups.push_back(std::move(group));
  }
  return groups;
}

AccessState ClusterPortGroups::state_of(std::uint16_t target_port) const {
  const AccessState own = own_state();
  if (target_port == portal_group_tag(1, nodes_.self.value)) return own;
  return own == AccessState::kTransitioning ? own : AccessState::kStandby;
}

// The lease's end, the election, and what the new coordinator needs to open the log.
std::uint8_t ClusterPortGroups::transition_s() const {
  return static_cast<std::uint8_t>(std::min<std::int64_t>(3 * nodes_.lease.count() + 10, 255));
}

}  // namespace mariner::node
