#include "server/iscsi/observer.h"

namespace mariner::iscsi {

std::string_view end_reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::kLogout: return "logout";
    case EndReason::kPeerClosed: return "peer-closed";
    case EndReason::kSocketError: return "socket-error";
    case EndReason::kReinstated: return "reinstated";
    case EndReason::kLoginFailed: return "login-failed";
    case EndReason::kLoginTimeout: return "login-timeout";
    case EndReason::kCrowdedOut: return "crowded-out";
    case EndReason::kProtocolError: return "protocol-error";
    case EndReason::kHeaderDigestError: return "header-digest-error";
    case EndReason::kDataDigestError: return "data-digest-error";
    case EndReason::kSilent: return "silent";
    case EndReason::kDiscoveryOver: return "discovery-over";
    case EndReason::kKicked: return "kicked";
    case EndReason::kRedirected: return "redirected";
    case EndReason::kForbidden: return "forbidden";
    case EndReason::kTargetClosed: return "target-closed";
    case EndReason::kTargetReset: return "target-reset";
    case EndReason::kShutdown: return "shutdown";
  }
  return "unknown";
}

bool orderly(EndReason reason) {
  switch (reason) {
    case EndReason::kLogout:
    case EndReason::kReinstated:
    case EndReason::kDiscoveryOver:
    case EndReason::kKicked:
    case EndReason::kRedirected:
    case EndReason::kForbidden:
    case EndReason::kTargetClosed:
    case EndReason::kTargetReset:
    case EndReason::kShutdown: return true;
    default: return false;
  }
}

}  // namespace mariner::iscsi
