// An IP address with a port, as written in the configuration: "0.0.0.0:3260", "[::1]:9860".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner {

struct Endpoint {
  std::string address;     // in canonical form, without brackets
  std::uint16_t port = 0;  // 0: any free one
  bool v6 = false;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  [[nodiscard]] bool loopback() const;
  // Not to be routed in the Internet: loopback, link-local, private (RFC 1918), shared (RFC 6598)
  // or unique local (RFC 4193).
  [[nodiscard]] bool on_private_network() const;
};

// kInvalidArgument: not an IPv4 address or a bracketed IPv6 address followed by a port.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

// Where a target can be reached from elsewhere: an endpoint that is one address and one port. A
// portal group's tag may follow, as SendTargets prints it ("192.0.2.1:3260,1"); it is checked and
// left out, because a redirection does not have it (RFC 7143 13.8).
[[nodiscard]] Result<Endpoint> parse_target_address(std::string_view text);

// What parse_endpoint() reads.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

}  // namespace mariner
