// What the iSCSI server reports to whoever logs: libraries do not.
//
// Exactly one event for each connection that ends, whatever it did wrong on the way. Called on the
// Executor's thread; must not call back into the server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mariner::iscsi {

enum class EndReason : std::uint8_t {
  kLogout,       // the initiator logged out
  kPeerClosed,   // the initiator closed the connection without
  kSocketError,  // the operating system reported one
  kReinstated,   // the initiator logged in again with the same ISID
  kLoginFailed,  // a Login Response said why
  kLoginTimeout,
  kCrowdedOut,     // too many connections were in their login, or in discovery sessions; this was
                   // the oldest
  kProtocolError,  // the initiator broke the protocol
  kHeaderDigestError,
  kDataDigestError,
  kSilent,         // no answer to a ping
  kDiscoveryOver,  // a discovery session has had its time
  kKicked,         // an administrator closed the session
  kRedirected,     // the target is to be used elsewhere
  kForbidden,      // the initiator may not use the target any more
  kTargetClosed,   // the target went away
  kTargetReset,    // TARGET COLD RESET
  kShutdown,       // this server is stopping
};

// "protocol-error"; for logs and metrics.
[[nodiscard]] std::string_view end_reason_name(EndReason reason);
// True if the end is nobody's fault: logged quietly.
[[nodiscard]] bool orderly(EndReason reason);

// The two ends of a connection.
struct Endpoints {
  std::string address;  // the initiator's: "192.0.2.7:51234"
  std::string portal;   // ours: "192.0.2.1:3260"
};

struct ConnectionEnd {
  EndReason reason = EndReason::kPeerClosed;
  std::string detail;  // what was expected and what was found; may be empty
  Endpoints endpoints;
  std::string initiator;  // as far as known
  std::string target;
  std::uint64_t session_id = 0;  // 0: the login was not completed
};

struct SessionInfo;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void session_opened(const SessionInfo& session) = 0;
  // Another connection of a session.
  virtual void connection_joined(const SessionInfo& session, const Endpoints& endpoints) = 0;
  virtual void connection_ended(const ConnectionEnd& end) = 0;
  // Listening or accepting failed, e.g. for want of file descriptors.
  virtual void portal_failed(std::string_view portal, std::string_view what) = 0;
};

}  // namespace mariner::iscsi
