// A multicast group, as configured: all that sender and receivers have to agree on beforehand.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace mariner::trm {

struct Group {
  std::string address;  // IPv4, of 224.0.0.0/4
  std::uint16_t port = 0;
  friend auto operator<=>(const Group&, const Group&) = default;
};

}  // namespace mariner::trm
