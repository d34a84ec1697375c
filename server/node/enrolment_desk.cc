#include "server/node/enrolment_desk.h"

#include <utility>

#include "server/peer/invitation.h"

namespace mariner::node {
namespace {

peer::WallTime wall_of(const EventLoop& loop) {
  return peer::WallTime(std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::nanoseconds(loop.wall_time().ns)));
}

}  // namespace

Result<api::Invitation> EnrolmentDesk::invite(const std::string& node, bool dry_run) {
  if (auto good = peer::check_name("node", node); !good) return good.error();
  if (!address_) {
    return Error{ErrorCode::kInvalidArgument,
                 "this node does not say where others can enrol: write [cluster] enrol = "
                 "\"ADDRESS:PORT\" into its configuration, an address that they reach, and restart "
                 "marinerd"};
  }
  const auto identity = pki_.load(wall_of(loop_));
  if (!identity) return identity.error();
  auto authority = pki_.load_authority(wall_of(loop_));
  if (!authority) return authority.error();
  if (node == identity->name.node) {
    return Error{ErrorCode::kAlreadyExists, node + " is the name of this node"};
  }
  api::Invitation invitation;
  invitation.set_schema(1);
  invitation.set_node(node);
  invitation.set_cluster(identity->name.cluster);
  invitation.set_address(to_string(*address_));
  invitation.set_fingerprint(authority->certificate.fingerprint());
  if (dry_run) return invitation;

  if (guests_ == nullptr) {
    if (auto r = listen(*identity, std::move(*authority)); !r) return r.error();
  }
  const auto secret = book_.invite(node, loop_.monotonic_time());
  if (!secret) return secret.error();
  unneeded_since_.reset();
  invitation.set_token(peer::to_token({.address = guests_->listener->addresses().front(),
                                       .fingerprint = invitation.fingerprint(),
                                       .secret = *secret}));
  invitation.set_ends_ns(loop_.wall_time().ns + static_cast<std::uint64_t>(book_.life().count()));
  log_.info("a node was invited", {{"node", node}, {"enrol", invitation.address()}});
  return invitation;
}

Result<void> EnrolmentDesk::listen(const peer::NodeIdentity& identity, peer::Authority authority) {
  auto tls = peer::TlsContext::for_inviting(identity);
  if (!tls) return tls.error();
  auto guests = std::make_unique<Guests>(
      Guests{peer::Inviter(std::move(authority), identity.name.cluster, book_), nullptr});
  auto listener = peer::EnrolmentListener::open({loop_.context(), loop_, std::move(*tls), {}},
                                                {.addresses = {*address_}}, guests->inviter, *this);
  if (!listener) return listener.error();
  guests->listener = std::move(*listener);
  guests->listener->start();
  guests_ = std::move(guests);
  log_.info("listening for new nodes", {{"address", to_string(*address_)}});
  return {};
}

void EnrolmentDesk::tick() {
  const auto now = loop_.monotonic_time();
  if (guests_ == nullptr || book_.open(now) > 0) return;
  if (!unneeded_since_) unneeded_since_ = now;
  if (guests_->listener->connections() > 0 && now - *unneeded_since_ < kGrace) return;
  guests_.reset();
  unneeded_since_.reset();
  log_.info("not listening for new nodes any more: no invitation waits");
}

void EnrolmentDesk::enrolled(const peer::NodeName& name, std::string_view remote) {
  log_.info("a node was enrolled", {{"node", name.node}, {"address", remote}});
}

void EnrolmentDesk::refused(const Error& reason) {
  const LogLimiter::Verdict verdict = refusals_.admit(loop_.monotonic_time());
  if (verdict.untold > 0) {
    log_.warning("more attempts to enrol were refused", {{"attempts", verdict.untold}});
  }
  if (verdict.write) log_.warning("an attempt to enrol was refused", {{"why", reason.message}});
}

}  // namespace mariner::node
