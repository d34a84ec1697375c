// How a new node gets its certificate, sans I/O (PROTOCOL.md 5): one request, one reply, over TLS
// to a node that shows the cluster's authority.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "server/peer/certificates.h"
#include "server/peer/frame.h"
#include "server/peer/invitation_book.h"
#include "server/peer/pki_folder.h"

namespace mariner::peer {

inline constexpr FrameBounds kEnrolBounds{.header_bytes_max = 16 * 1024, .payload_bytes_max = 0};

// At the node that has the authority.
class Inviter {
 public:
  // `book` outlives it.
  Inviter(Authority authority, std::string cluster, InvitationBook& book)
      : authority_(std::move(authority)), cluster_(std::move(cluster)), book_(book) {}

  struct Answer {
    std::string reply;          // the header of the frame to be sent
    Result<NodeName> enrolled;  // who has a certificate now, or why nobody has
  };
  // To any bytes from `address` (with a port). A good secret is spent, whatever follows.
  [[nodiscard]] Answer answer(std::string_view request, std::string_view address,
                              std::chrono::nanoseconds now, WallTime wall);

 private:
  [[nodiscard]] Result<Certificate> sign(std::string_view request, std::string_view address,
                                         std::chrono::nanoseconds now, WallTime wall);

  Authority authority_;
  std::string cluster_;
  InvitationBook& book_;
};

// At the new node. Which of the certificates that the other has shown is the authority: the one
// with the invitation's fingerprint, if it has issued the first, good at `now`. kProtocol.
[[nodiscard]] Result<Certificate> find_authority(std::span<const Certificate> shown,
                                                 std::string_view fingerprint, WallTime now);

[[nodiscard]] std::string make_enrol_request(std::string_view secret,
                                             std::string_view signing_request);

// What `reply` brings the owner of `key`. kNotFound and the like, as the other has refused;
// kProtocol for what is no reply, or no certificate of ours.
[[nodiscard]] Result<NodeIdentity> take_enrol_reply(std::string_view reply, const PrivateKey& key,
                                                    const Certificate& authority, WallTime now);

}  // namespace mariner::peer
