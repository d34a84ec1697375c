// What a node says of itself in the store that the nodes share, in the value of the key that exists
// as long as its lease (alive_key()).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/manager/cluster_view.h"
#include "server/manager/volume_record.h"

namespace mariner::manager {

struct AliveNode {
  std::string name;
  bool target = false;            // it can coordinate volumes
  std::vector<Endpoint> portals;  // where hosts reach it: each one address and one port

  friend bool operator==(const AliveNode&, const AliveNode&) = default;
};

inline constexpr std::size_t kAlivePortalsMax = 64;

[[nodiscard]] std::string encode(const AliveNode& node);
// kCorrupt: not such a value, of another version, or with portals that nobody can reach (no
// address, of any address, without a port) or more than kAlivePortalsMax.
[[nodiscard]] Result<AliveNode> decode_alive_node(std::string_view bytes);

// What the view knows of a node that is alive. Nothing: it is not alive, or what it says of itself
// is not understood.
[[nodiscard]] std::optional<AliveNode> alive_node(const ClusterView& view,
                                                  replication::NodeId node);

// Of `portals` the one to send a host to that has come through the portal `came` ("ADDRESS:PORT"):
// the one whose address shares the most leading bits with that, so that a host stays in its
// network; the first of several. Nothing: there are none.
[[nodiscard]] std::optional<Endpoint> nearest_portal(const std::vector<Endpoint>& portals,
                                                     std::string_view came);

}  // namespace mariner::manager
