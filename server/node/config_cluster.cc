#include "server/node/config_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/node/config_roles.h"
#include "server/node/config_values.h"
#include "server/peer/node_name.h"

namespace mariner::config {
namespace {

// Of any address, if it is one of this node's; the port is known to the others.
Result<Endpoint> parse_listen(std::string_view text) {
  auto endpoint = parse_endpoint(text);
  if (endpoint && endpoint->port == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" has no port that others could know: expected one, as in "
                             "\"192.0.2.1:9862\"",
                             text)};
  }
  return endpoint;
}

Result<Endpoint> parse_node_address(std::string_view text) {
  return reachable_endpoint(text, "192.0.2.1:9862");
}

Result<Endpoint> parse_etcd_address(std::string_view text) {
  return reachable_endpoint(text, "192.0.2.1:2379");
}

// The endpoints of an array, each once, at least one and at most `count_max`.
template <typename Parse>
std::vector<Endpoint> read_endpoints(ConfigTable& table, std::string_view key,
                                     std::size_t count_max, Parse parse) {
  std::vector<Endpoint> endpoints;
  const auto texts = table.strings(key);
  if (!texts) return endpoints;
  if (texts->empty()) table.error(key, "empty; expected at least one address with a port");
  if (texts->size() > count_max) {
    table.error(key, fmt::format("expected at most {}, found {}", count_max, texts->size()));
    return endpoints;
  }
  for (const std::string& text : *texts) {
    auto endpoint = parse(text);
    if (!endpoint) {
      table.error(key, endpoint.error().message);
    } else if (std::ranges::find(endpoints, *endpoint) != endpoints.end()) {
      table.error(key, fmt::format("\"{}\" stands there twice", text));
    } else {
      endpoints.push_back(*std::move(endpoint));
    }
  }
  return endpoints;
}

// Members on one address are on one machine.
void warn_of_lone_machine(ConfigTable& table, const std::vector<Endpoint>& members) {
  const std::size_t needed = members.size() / 2 + 1;
  for (const Endpoint& member : members) {
    const auto left = members.size() - static_cast<std::size_t>(std::ranges::count(
                                           members, member.address, &Endpoint::address));
    if (left >= needed) continue;
    table.warning(
        "etcd",
        fmt::format("the loss of {} alone stops the cluster: {} of the members of etcd would be "
                    "left, and {} are needed; three on three machines bear the loss of any one",
                    member.address, left, needed));
    return;
  }
}

void warn_of_foreign_network(ConfigTable& table, const std::vector<Endpoint>& members) {
  for (const Endpoint& member : members) {
    if (member.on_private_network()) continue;
    table.warning(
        "etcd", fmt::format("{} is no address of a private network: nodes speak with etcd by plain "
                            "HTTP, without passwords, and who gets between them decides who "
                            "coordinates; use a network that you trust",
                            to_string(member)));
  }
}

void read_id(ConfigTable& table, ClusterNodeConfig& node) {
  if (!table.has("id")) {
    table.error("id", fmt::format("missing: a node needs a number, 1 to {}, that no other has or "
                                  "ever had",
                                  kClusterNodeIdMax));
  }
  const auto id = table.integer("id");
  if (!id) return;
  if (*id < 1 || *id > std::int64_t{kClusterNodeIdMax}) {
    table.error("id", fmt::format("expected 1 to {}, found {}", kClusterNodeIdMax, *id));
  } else {
    node.id = static_cast<std::uint32_t>(*id);
  }
}

ClusterNodeConfig read_node(ConfigTable table) {
  ClusterNodeConfig node;
  read_id(table, node);
  if (!table.has("name")) {
    table.error("name", "missing: a node needs the name that stands in its certificate");
  }
  if (auto name = table.string("name")) {
    const auto valid = peer::check_name("node", *name);
    if (!valid) table.error("name", valid.error().message);
    node.name = *std::move(name);
  }
  if (!table.has("addresses")) {
    table.error("addresses",
                "missing: where do others reach it? As in addresses = [\"192.0.2.1:9862\"]");
  }
  node.addresses = read_endpoints(table, "addresses", kNodeAddressesMax, parse_node_address);
  table.finish();
  return node;
}

// Notes what `node` shares with one of those before it.
void check_unique(const toml::source_region& where, const ClusterNodeConfig& node,
                  const std::vector<ClusterNodeConfig>& others, ConfigProblems& problems) {
  for (const ClusterNodeConfig& other : others) {
    if (node.id != 0 && node.id == other.id) {
      problems.error(where, "cluster.node.id",
                     fmt::format("{} is the number of node \"{}\": expected another one, that no "
                                 "node has or ever had",
                                 node.id, other.name));
    }
    if (!node.name.empty() && node.name == other.name) {
      problems.error(where, "cluster.node.name",
                     fmt::format("there are two nodes \"{}\": expected each once", node.name));
    }
    for (const Endpoint& address : node.addresses) {
      if (std::ranges::find(other.addresses, address) == other.addresses.end()) continue;
      problems.error(where, "cluster.node.addresses",
                     fmt::format("{} is where node \"{}\" is: expected another one",
                                 to_string(address), other.name));
    }
  }
}

void read_nodes(ConfigTable& table, ConfigProblems& problems,
                std::vector<ClusterNodeConfig>& nodes) {
  const auto tables = table.tables("node");
  if (tables.size() > kClusterNodesMax) {
    table.error("node", fmt::format("expected at most {} nodes, found {}", kClusterNodesMax,
                                    tables.size()));
    return;
  }
  for (const auto* node_table : tables) {
    ClusterNodeConfig node = read_node(ConfigTable(*node_table, "cluster.node", problems));
    check_unique(node_table->source(), node, nodes, problems);
    nodes.push_back(std::move(node));
  }
}

// Whether what is there fits the roles.
void check_cluster_keys(ConfigTable& table, const Config& config) {
  if (config.standalone()) {
    for (const auto* key :
         {"listen", "etcd", "lease", "logger_patience", "absent_max", "catch_up_max", "node"}) {
      if (table.has(key)) {
        table.warning(key, "only in a cluster: not used, because this node is standalone");
      }
    }
  }
  if (!clustered(config)) return;
  if (!table.has("listen")) {
    table.error("listen",
                "missing: where do other nodes reach this one? As in listen = "
                "[\"192.0.2.1:9862\"]");
  }
  if (!table.has("etcd")) {
    table.error("etcd",
                "missing: a node that is not standalone needs the addresses of etcd's members, as "
                "in etcd = [\"192.0.2.1:2379\", \"192.0.2.2:2379\", \"192.0.2.3:2379\"]");
  }
  if (!table.has("node")) {
    table.error("node",
                "missing: a node that is not standalone needs a [[cluster.node]] for each node of "
                "the cluster, this one included");
  }
}

}  // namespace

void read_cluster(ConfigTable table, ConfigProblems& problems, Config& config) {
  ClusterConfig& cluster = config.cluster;
  table.parsed("pki", cluster.pki, absolute_path);
  table.parsed("enrol", cluster.enrol,
               [](std::string_view text) -> Result<std::optional<Endpoint>> {
                 auto endpoint = reachable_endpoint(text, "192.0.2.1:9861");
                 if (!endpoint) return endpoint.error();
                 return std::optional<Endpoint>(*std::move(endpoint));
               });
  cluster.listen = read_endpoints(table, "listen", kNodeAddressesMax, parse_listen);
  cluster.etcd = read_endpoints(table, "etcd", kEtcdMembersMax, parse_etcd_address);
  warn_of_lone_machine(table, cluster.etcd);
  warn_of_foreign_network(table, cluster.etcd);
  table.parsed("lease", cluster.lease, seconds_between(kLeaseMin, kLeaseMax));
  table.parsed("logger_patience", cluster.logger_patience,
               seconds_between(std::chrono::seconds(0), kLoggerPatienceMax));
  table.parsed("absent_max", cluster.absent_max, seconds_between(kAbsentMin, kAbsentMax));
  table.parsed("catch_up_max", cluster.catch_up_max, fetch_rate);
  read_nodes(table, problems, cluster.nodes);
  check_cluster_keys(table, config);
  table.finish();
}

}  // namespace mariner::config
