// Where hosts without multipath are sent that log in at a node which does not serve their volume
// (RFC 7143 11.13.5), for volumes that are to have that (meta::Cluster::redirect).
//
// Each node tells the others in the shared store where it is reached (manager/alive_node.h).
// Loop's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/endpoint.h"
#include "server/iscsi/target_directory.h"
#include "server/manager/cluster_view.h"
#include "server/node/cluster_volume.h"

namespace mariner::node {

// Where a node is reached that listens on `listening` ("ADDRESS:PORT"): a portal of every address
// is at those of `addresses`, which are the node's own.
[[nodiscard]] std::vector<Endpoint> reachable_portals(const std::vector<std::string>& listening,
                                                      const std::vector<Endpoint>& addresses);

// Where a host is to use the volume that has come through the portal `came` of this node. Nothing:
// here; or nobody serves the volume, or nobody knows where who does is reached.
[[nodiscard]] std::optional<iscsi::Redirection> redirection_of(const ClusterVolume& volume,
                                                               const manager::ClusterView& view,
                                                               std::string_view came);

// Nobody serves the volume, and this node is not about to. A login is refused for a while then
// (0x0301): open-iscsi keeps its commands and logs in again a little later where it was told to,
// and so finds who serves by then. A session here could be used for nothing, and a host that scans
// it would see a disk without a size.
[[nodiscard]] bool served_nowhere(const ClusterVolume& volume);

}  // namespace mariner::node
