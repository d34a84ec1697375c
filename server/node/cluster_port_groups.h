// The target port groups of a volume of a cluster: the portals of each node that may serve it are a
// group, whose number is the node's. Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "server/cluster/target_part.h"
#include "server/manager/volume_directory.h"
#include "server/scsi/port_groups.h"

namespace mariner::node {

class ClusterPortGroups final : public scsi::PortGroups {
 public:
  struct Nodes {
    VolumeId volume;
    replication::NodeId self;
    std::vector<std::uint32_t> all;  // that may serve the volume; the first does so rather
    std::chrono::seconds lease{0};
    // Sessions at a node in standby are sent elsewhere; until they have gone, what their hosts ask
    // is in transition: a host without multipath asks that again, and fails what is in standby.
    bool redirect = false;
  };
  // `directory` outlives it.
  ClusterPortGroups(Nodes nodes, const manager::VolumeDirectory& directory)
      : nodes_(std::move(nodes)), directory_(directory) {}

  // Until detach() the state is that of this part; then it is transitioning.
  void attach(const cluster::TargetPart& target) { target_ = &target; }
  void detach() { target_ = nullptr; }

  // Relative target port identifiers of all nodes, ascending.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  [[nodiscard]] std::vector<scsi::PortGroup> groups() const override;
  [[nodiscard]] scsi::AccessState state_of(std::uint16_t target_port) const override;
  [[nodiscard]] std::uint8_t transition_s() const override;

 private:
  [[nodiscard]] scsi::AccessState own_state() const;

  const Nodes nodes_;
  const manager::VolumeDirectory& directory_;
  const cluster::TargetPart* target_ = nullptr;
};

}  // namespace mariner::node
