#include "server/manager/alive_node.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>

#include "proto/cluster.pb.h"

namespace mariner::manager {
namespace {

constexpr std::uint32_t kVersion = 1;

using AddressBytes = std::array<std::uint8_t, sizeof(in6_addr)>;

AddressBytes bytes_of(const Endpoint& endpoint) {
  AddressBytes bytes{};
  inet_pton(endpoint.v6 ? AF_INET6 : AF_INET, endpoint.address.c_str(), bytes.data());
  return bytes;
}

// How many leading bits two addresses of one family share; -1: of two families.
int shared_bits(const Endpoint& a, const Endpoint& b) {
  if (a.v6 != b.v6) return -1;
  const AddressBytes left = bytes_of(a);
  const AddressBytes right = bytes_of(b);
  const auto [at, other] = std::ranges::mismatch(left, right);
  const auto same = static_cast<int>(at - left.begin()) * 8;
  if (at == left.end()) return same;
  return same + std::countl_zero(static_cast<std::uint8_t>(*at ^ *other));
}

}  // namespace

std::string encode(const AliveNode& node) {
  cluster::AliveNode message;
  message.set_version(kVersion);
  message.set_name(node.name);
  message.set_target(node.target);
  for (const Endpoint& portal : node.portals) message.add_portals(to_string(portal));
  return message.SerializeAsString();
}

Result<AliveNode> decode_alive_node(std::string_view bytes) {
  const auto corrupt = [](const std::string& what) {
    return Error{ErrorCode::kCorrupt, "what a node says of itself in the cluster's store " + what};
  };
  cluster::AliveNode message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return corrupt("cannot be read (" + std::to_string(bytes.size()) + " bytes)");
  }
  if (message.version() != kVersion) {
    return corrupt("has version " + std::to_string(message.version()) + ": expected " +
                   std::to_string(kVersion));
  }
  if (static_cast<std::size_t>(message.portals_size()) > kAlivePortalsMax) {
    return corrupt("has " + std::to_string(message.portals_size()) + " portals: expected at most " +
                   std::to_string(kAlivePortalsMax));
  }
  AliveNode node;
  node.name = message.name();
  node.target = message.target();
  for (const std::string& text : message.portals()) {
    Result<Endpoint> portal = parse_target_address(text);
    if (!portal) return corrupt("has a portal that is none: " + portal.error().message);
    node.portals.push_back(*std::move(portal));
  }
  return node;
}

std::optional<AliveNode> alive_node(const ClusterView& view, replication::NodeId node) {
  const Entry* const entry = view.find(alive_key(node));
  if (entry == nullptr) return std::nullopt;
  Result<AliveNode> decoded = decode_alive_node(entry->value);
  if (!decoded) return std::nullopt;
  return *std::move(decoded);
}

std::optional<Endpoint> nearest_portal(const std::vector<Endpoint>& portals,
                                       std::string_view came) {
  if (portals.empty()) return std::nullopt;
  const Result<Endpoint> here = parse_endpoint(came);
  if (!here) return portals.front();
  return *std::ranges::max_element(
      portals, {}, [&here](const Endpoint& portal) { return shared_bits(portal, *here); });
}

}  // namespace mariner::manager
