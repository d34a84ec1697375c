#include "server/node/front.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "server/admin/admin_server.h"
#include "server/node/processors.h"

namespace mariner::node {
namespace {

constexpr std::uint16_t kLogoutSeconds = 2;

iscsi::PortalOptions portal_options(const ServerConfig& server, std::uint32_t node) {
  iscsi::PortalOptions options;
  for (const Endpoint& portal : server.portals) {
    options.addresses.push_back({to_string(portal), portal_group_tag(1, node)});
  }
  for (const PortalGroupConfig& group : server.portal_groups) {
    for (const Endpoint& portal : group.portals) {
      options.addresses.push_back({to_string(portal), portal_group_tag(group.tag, node)});
    }
  }
  options.iscsi.sessions_max = server.sessions_max;
  options.iscsi.initiator_sessions_max = server.sessions_per_initiator_max;
  options.iscsi.initiator_payload_bytes_max = server.initiator_memory.bytes;
  options.socket_threads =
      server.socket_threads.value_or(default_socket_threads(usable_processors()));
  options.socket_threads_load = server.socket_threads_load;
  if (server.socket_threads_load == 0) options.lent_pdu_bytes = 0;
  options.connections_max =
      std::max(options.connections_max, server.sessions_max + options.login_connections_max);
  return options;
}

}  // namespace

static_assert(kClusterPortalGroupTagMax * (kClusterNodeIdMax + 1) - 1 <= UINT16_MAX);

std::uint16_t portal_group_tag(std::uint16_t tag, std::uint32_t node) {
  if (node == 0) return tag;
  return static_cast<std::uint16_t>((tag - 1) * (kClusterNodeIdMax + 1) + node);
}

Result<std::unique_ptr<Front>> Front::open(const ServerConfig& server, std::uint32_t node,
                                           bool portals, const Parts& parts) {
  std::unique_ptr<Front> front(new Front(parts));
  if (portals) {
    Result<std::unique_ptr<iscsi::Portal>> portal =
        iscsi::Portal::open(portal_options(server, node),
                            {parts.loop.context(), parts.loop, parts.directory, front->session_log_,
                             [&loop = parts.loop] { return loop.busy_time(); }});
    if (!portal) return portal.error();
    front->portal_ = std::move(*portal);
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(server.admin_socket).parent_path(),
                                      error);
  Result<std::unique_ptr<web::HttpServer>> admin =
      admin::open_admin_server(parts.loop.context(), server.admin_socket, parts.control);
  if (!admin) return admin.error();
  front->admin_ = std::move(*admin);
  if (server.http) {
    Result<std::unique_ptr<web::HttpServer>> web =
        web::open_web_server(parts.loop.context(), *server.http, parts.web);
    if (!web) return web.error();
    front->web_ = std::move(*web);
  }
  if (!portals) return front;
  for (const std::string& address : front->portal_->addresses()) {
    parts.log.info("listening for initiators", {{"portal", address}});
  }
  return front;
}

Front::~Front() = default;

void Front::start() {
  if (portal_ != nullptr) portal_->start();
  admin_->start();
  if (web_ != nullptr) web_->start();
}

void Front::add_metrics(web::NodeMetrics& metrics) const {
  if (portal_ == nullptr) return;
  const iscsi::ServerCounters& counters = portal_->sessions().counters();
  metrics.iscsi_sessions = portal_->sessions().size();
  metrics.iscsi_lent_connections = portal_->lent_connections();
  metrics.login_failures = counters.login_failures;
  metrics.login_limit_refusals = counters.limit_refusals;
  metrics.login_redirections = counters.redirections;
  metrics.digest_errors = counters.header_digest_errors + counters.data_digest_errors;
}

void Front::stop(UniqueFunction<void()> done) {
  if (portal_ == nullptr) return done();
  portal_->stop(kLogoutSeconds, std::move(done));
}

}  // namespace mariner::node
