// A node that enrols others, on loopback, for the tests of either side.
#pragma once

#include <string>
#include <vector>

#include "server/peer/enrolment_listener.h"
#include "server/peer/invitation.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer::test {

class EnrolmentRig final : public EnrolmentObserver {
 public:
  explicit EnrolmentRig(Loop& loop, const ChannelOptions& options = {},
                        std::size_t connections_max = 16)
      : loop_(loop) {
    const NodeIdentity identity = cluster.node("n1");
    listener = EnrolmentListener::open(
                   loop.environment(TlsContext::for_inviting(identity).value(), options),
                   {.addresses = {{.address = "127.0.0.1", .port = 0}},
                    .connections_max = connections_max},
                   inviter, *this)
                   .value();
    listener->start();
  }

  void enrolled(const NodeName& name, std::string_view) override { names.push_back(name.node); }
  void refused(const Error& reason) override { refusals.push_back(reason); }

  Invitation invite(const std::string& node) {
    return {.address = listener->addresses().at(0),
            .fingerprint = cluster.authority().certificate.fingerprint(),
            .secret = book.invite(node, loop_.executor().monotonic_time()).value()};
  }

  const TestCluster cluster{"north"};
  InvitationBook book;
  Inviter inviter{cluster.authority(), "north", book};
  std::unique_ptr<EnrolmentListener> listener;
  std::vector<std::string> names;
  std::vector<Error> refusals;

 private:
  Loop& loop_;
};

}  // namespace mariner::peer::test
