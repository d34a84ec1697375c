// Who a node is: its name within its cluster, as its certificate says it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner::peer {

inline constexpr std::size_t kNodeNameBytesMax = 63;

struct NodeName {
  std::string cluster;
  std::string node;

  friend bool operator==(const NodeName&, const NodeName&) = default;
};

// 1 to 63 characters of a-z, 0-9, '.' and '-', a letter or digit first and last: what a host's name
// has. `what` is "cluster" or "node". kInvalidArgument.
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

// "mariner://CLUSTER/NODE": the subjectAltName of a node's certificate (RFC 5280 4.2.1.6).
[[nodiscard]] std::string to_uri(const NodeName& name);

// What to_uri() gives, and nothing else. kInvalidArgument.
[[nodiscard]] Result<NodeName> parse_uri(std::string_view uri);

}  // namespace mariner::peer
