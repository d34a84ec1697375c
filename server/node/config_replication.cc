#include "server/node/config_replication.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/node/config_roles.h"
#include "server/node/config_values.h"
#include "trm-multicast/group_socket.h"

namespace mariner::config {
namespace {

constexpr const char* kGroupExample = "group = \"239.192.7.1:6003\"";

Result<bool> parse_mode(std::string_view text) {
  if (text == "multicast") return true;
  if (text == "unicast") return false;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"multicast\" or \"unicast\", found \"{}\"", text)};
}

// Where other nodes reach this one, if that is one IPv4 address; empty: it is not.
std::string listening_address(const ClusterConfig& cluster) {
  std::string address;
  for (const Endpoint& each : cluster.listen) {
    if (each.v6) continue;
    if (each.address == "0.0.0.0" || (!address.empty() && address != each.address)) return "";
    address = each.address;
  }
  return address;
}

void check_replication_keys(ConfigTable& table, const Config& config) {
  const ReplicationConfig& replication = config.replication;
  if (!table.has("mode") && table.has("group")) {
    table.warning("group", "not used: without mode = \"multicast\" writes go by unicast");
  }
  if (!replication.multicast) return;
  if (!table.has("group")) {
    table.error("group",
                fmt::format("missing: multicast needs the address and port of a group that nobody "
                            "else uses, as in {}",
                            kGroupExample));
  }
  if (!table.has("interface") && replication.interface.empty() && !config.cluster.listen.empty()) {
    table.error("interface",
                "missing: [cluster] listen is not one IPv4 address of this node; expected the one "
                "by whose network multicast is to go, as in interface = \"192.0.2.1\"");
  }
}

}  // namespace

Result<trm::Group> parse_group(std::string_view text) {
  const auto wrong = [text](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no multicast group with a port: {}; expected one as in {}",
                             text, why, kGroupExample)};
  };
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return wrong("it is no IPv4 address with a port");
  const trm::Group group{endpoint->address, endpoint->port};
  const Result<void> good = trm::check_group({group.address, group.port, "0.0.0.0"});
  if (!good) return wrong(good.error().message);
  return group;
}

void read_replication(ConfigTable& root, ConfigProblems& problems, Config& config) {
  ReplicationConfig& replication = config.replication;
  replication.interface = listening_address(config.cluster);
  const toml::table* const section = root.table("replication");
  if (section == nullptr) return;
  ConfigTable table(*section, "replication", problems);
  table.parsed("mode", replication.multicast, parse_mode);
  table.parsed("group", replication.group, parse_group);
  table.parsed("rate_limit", replication.rate_limit_bits,
               bit_rate_between(kRateLimitMinBits, kRateLimitMaxBits));
  table.parsed("interface", replication.interface, interface_address);
  replication.encrypt = table.boolean("encrypt").value_or(true);
  if (config.standalone()) {
    root.warning("replication", "only in a cluster: not used, because this node is standalone");
  }
  if (clustered(config)) check_replication_keys(table, config);
  table.finish();
}

}  // namespace mariner::config
