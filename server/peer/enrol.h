// The new node's side of an enrolment: a program that waits, without an event loop.
#pragma once

#include <chrono>

#include "proto/error.h"
#include "server/peer/certificates.h"
#include "server/peer/invitation.h"
#include "server/peer/pki_folder.h"

namespace mariner::peer {

// Makes a key, connects to where the invitation says, believes it only if it shows the authority
// with the invitation's fingerprint, and only then tells it the secret. The invitation is spent
// when this succeeds, and may be when it fails. Blocks for up to `time_max` in each step.
// kUnavailable: no connection, or it broke; kProtocol: somebody else answers; kNotFound: refused,
// with the reason.
[[nodiscard]] Result<NodeIdentity> enrol(const Invitation& invitation, WallTime now,
                                         std::chrono::seconds time_max = std::chrono::seconds(10));

}  // namespace mariner::peer
