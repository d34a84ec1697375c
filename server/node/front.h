// What of a node speaks to the outside: portals for initiators, the admin API, metrics and health.
//
// Loop's thread.
#pragma once

#include <memory>

#include "server/admin/control.h"
#include "server/iscsi/portal.h"
#include "server/node/config.h"
#include "server/node/event_loop.h"
#include "server/node/log.h"
#include "server/node/session_log.h"
#include "server/web/metrics.h"
#include "server/web/web_server.h"

namespace mariner::node {

class Front {
 public:
  struct Parts {  // all outlive it
    EventLoop& loop;
    Log& log;
    iscsi::TargetDirectory& directory;
    admin::Control& control;
    web::WebSource& web;
  };
  // Listens everywhere or fails; whoever connects waits until start(). `node`: 0 for a standalone
  // server. Portals are left out where no initiator is served.
  static Result<std::unique_ptr<Front>> open(const ServerConfig& server, std::uint32_t node,
                                             bool portals, const Parts& parts);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  void start();
  // Asks initiators to log out, and ends what they leave open; `done` when no connection is left.
  void stop(UniqueFunction<void()> done);

  // What initiators do, if any are served.
  void add_metrics(web::NodeMetrics& metrics) const;

  // Where initiators are served.
  [[nodiscard]] iscsi::Portal& portal() { return *portal_; }
  [[nodiscard]] bool has_portal() const { return portal_ != nullptr; }

 private:
  explicit Front(const Parts& parts) : session_log_(parts.loop, parts.log) {}

  SessionLog session_log_;
  std::unique_ptr<iscsi::Portal> portal_;
  std::unique_ptr<web::HttpServer> admin_;
  std::unique_ptr<web::HttpServer> web_;
};

// The tag of a portal group on a node of a cluster (0: of a standalone server, which keeps it): the
// groups of all nodes together are those of a target, each with a tag of its own (RFC 7143 4.4.1).
// The first group of a node has the node's number; `tag` is at most kClusterPortalGroupTagMax
// there.
[[nodiscard]] std::uint16_t portal_group_tag(std::uint16_t tag, std::uint32_t node);

}  // namespace mariner::node
