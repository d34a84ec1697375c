#include "server/node/cluster_redirection.h"

#include <algorithm>

#include "server/manager/alive_node.h"
#include "server/manager/serving_sign.h"

namespace mariner::node {

using State = cluster::TargetPart::State;

std::vector<Endpoint> reachable_portals(const std::vector<std::string>& listening,
                                        const std::vector<Endpoint>& addresses) {
  std::vector<Endpoint> portals;
  const auto add = [&portals](const Endpoint& portal) {
    const bool known = std::ranges::find(portals, portal) != portals.end();
    if (!known && portals.size() < manager::kAlivePortalsMax) portals.push_back(portal);
  };
  for (const std::string& text : listening) {
    const Result<Endpoint> portal = parse_endpoint(text);
    if (!portal) continue;
    if (parse_target_address(text)) {
      add(*portal);
      continue;
    }
    for (Endpoint address : addresses) {
      address.port = portal->port;
      if (address.v6 == portal->v6) add(address);
    }
  }
  return portals;
}

std::optional<iscsi::Redirection> redirection_of(const ClusterVolume& volume,
                                                 const manager::ClusterView& view,
                                                 std::string_view came) {
  if (!volume.meta.cluster().redirect() || volume.target == nullptr) return std::nullopt;
  if (volume.target->state() != State::kStandby) return std::nullopt;
  const auto server = manager::server_of(view, VolumeId{volume.meta.id()});
  if (!server) return std::nullopt;
  const auto node = manager::alive_node(view, *server);
  if (!node) return std::nullopt;
  const std::optional<Endpoint> portal = manager::nearest_portal(node->portals, came);
  if (!portal) return std::nullopt;
  return iscsi::Redirection{to_string(*portal), false};
}

bool served_nowhere(const ClusterVolume& volume) {
  return volume.meta.cluster().redirect() && volume.target != nullptr &&
         volume.target->state() == State::kTransitioning && volume.target->coordinator() == nullptr;
}

}  // namespace mariner::node
