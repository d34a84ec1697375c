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
};

// kInvalidArgument: not an IPv4 address or a bracketed IPv6 address followed by a port.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

// What parse_endpoint() reads.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

}  // namespace mariner
