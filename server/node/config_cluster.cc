#include "server/node/config_cluster.h"

#include <fmt/format.h>

#include "server/node/config_server.h"

namespace mariner::config {
namespace {

// It is printed in invitations: somebody elsewhere has to reach it as it stands.
Result<Endpoint> reachable(std::string_view text) {
  auto endpoint = parse_endpoint(text);
  if (!endpoint) return endpoint;
  if (endpoint->port == 0 || endpoint->address == (endpoint->v6 ? "::" : "0.0.0.0")) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is not where other nodes can connect to: expected one address "
                             "of this node and a port, as in \"192.0.2.1:9861\"",
                             text)};
  }
  return endpoint;
}

}  // namespace

void read_cluster(ConfigTable table, ClusterConfig& cluster) {
  table.parsed("pki", cluster.pki, absolute_path);
  table.parsed("enrol", cluster.enrol,
               [](std::string_view text) -> Result<std::optional<Endpoint>> {
                 auto endpoint = reachable(text);
                 if (!endpoint) return endpoint.error();
                 return std::optional<Endpoint>(*std::move(endpoint));
               });
  table.finish();
}

}  // namespace mariner::config
