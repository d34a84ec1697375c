// An invitation: all that a new node needs to join a cluster, as one line that an administrator
// carries from one node to another.
//
//   mariner-join/1/192.0.2.1:9862/<fingerprint, 64 digits>/<secret, 32 digits>
//
// The fingerprint tells the new node whom to believe, the secret tells the cluster whom to take.
// The secret is worth as much as the node's certificate until it is used or has ended.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "proto/endpoint.h"
#include "proto/error.h"

namespace mariner::peer {

inline constexpr std::size_t kSecretBytes = 16;

struct Invitation {
  Endpoint address;         // where to enrol
  std::string fingerprint;  // of the cluster's authority: Certificate::fingerprint()
  std::string secret;       // kSecretBytes bytes

  friend bool operator==(const Invitation&, const Invitation&) = default;
};

[[nodiscard]] std::string to_token(const Invitation& invitation);

// What to_token() gives, with blanks around it. kInvalidArgument, without the secret in the
// message.
[[nodiscard]] Result<Invitation> parse_token(std::string_view token);

}  // namespace mariner::peer
