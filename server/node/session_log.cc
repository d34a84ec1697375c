#include "server/node/session_log.h"

#include "server/iscsi/session.h"

namespace mariner::node {

void SessionLog::session_opened(const iscsi::SessionInfo& session) {
  log_.info(session.discovery ? "discovery session" : "session opened",
            {{"initiator", session.initiator},
             {"target", session.target},
             {"address", session.endpoints.address},
             {"session", session.id}});
}

void SessionLog::connection_joined(const iscsi::SessionInfo& session,
                                   const iscsi::Endpoints& endpoints) {
  log_.info("connection joined a session", {{"initiator", session.initiator},
                                            {"target", session.target},
                                            {"address", endpoints.address},
                                            {"session", session.id},
                                            {"connections", session.connections}});
}

void SessionLog::connection_ended(const iscsi::ConnectionEnd& end) {
  if (end.reason == iscsi::EndReason::kLoginFailed ||
      end.reason == iscsi::EndReason::kLoginTimeout ||
      end.reason == iscsi::EndReason::kCrowdedOut) {
    const auto [write, untold] = login_failures_.admit(executor_.monotonic_time());
    if (untold > 0) log_.warning("more logins failed than were told", {{"logins", untold}});
    if (!write) return;
  }
  log_.write(iscsi::orderly(end.reason) ? LogLevel::kInfo : LogLevel::kWarning, "connection closed",
             {{"reason", iscsi::end_reason_name(end.reason)},
              {"detail", end.detail},
              {"initiator", end.initiator},
              {"target", end.target},
              {"address", end.endpoints.address},
              {"session", end.session_id}});
}

void SessionLog::portal_failed(std::string_view portal, std::string_view what) {
  log_.error("a portal cannot accept connections", {{"portal", portal}, {"error", what}});
}

}  // namespace mariner::node
