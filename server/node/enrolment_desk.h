// Where this node, if it has the cluster's authority, invites new ones: the invitations that wait,
// and the listener that is open only as long as one does.
//
// Loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proto/admin.pb.h"
#include "server/node/config.h"
#include "server/node/event_loop.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"
#include "server/peer/enrolment_listener.h"

namespace mariner::node {

class EnrolmentDesk final : private peer::EnrolmentObserver {
 public:
  // All outlive it. `pki` is the folder of the node's certificates.
  EnrolmentDesk(EventLoop& loop, Log& log, std::string pki, std::optional<Endpoint> address)
      : loop_(loop), log_(log), pki_(std::move(pki)), address_(std::move(address)) {}
  ~EnrolmentDesk() override = default;

  // Invites `node` and listens for it. A dry run checks all that can be checked and has no token.
  // kInvalidArgument, kNotFound where the authority is not here, kLimit, or kIo.
  [[nodiscard]] Result<api::Invitation> invite(const std::string& node, bool dry_run);

  // Every second or so: stops listening when nobody is waited for.
  void tick();
  // Ends everything, for good.
  void close() { guests_.reset(); }

  [[nodiscard]] bool listening() const { return guests_ != nullptr; }

 private:
  // What exists while somebody is waited for; the parts in the order in which they need each other.
  struct Guests {
    peer::Inviter inviter;
    std::unique_ptr<peer::EnrolmentListener> listener;
  };

  // Whoever has connected when the last invitation goes gets so long.
  static constexpr std::chrono::seconds kGrace{15};

  Result<void> listen(const peer::NodeIdentity& identity, peer::Authority authority);
  void enrolled(const peer::NodeName& name, std::string_view remote) override;
  void refused(const Error& reason) override;

  EventLoop& loop_;
  Log& log_;
  const peer::PkiFolder pki_;
  const std::optional<Endpoint> address_;
  peer::InvitationBook book_;
  LogLimiter refusals_{{.lines_max = 20}};  // who guesses is not to fill the log
  std::unique_ptr<Guests> guests_;
  std::optional<std::chrono::nanoseconds> unneeded_since_;
};

}  // namespace mariner::node
