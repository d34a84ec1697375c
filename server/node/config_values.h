// Parsers of values that several sections of the configuration have. kInvalidArgument, with what
// was expected and what was found.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/client/quantity.h"

namespace mariner::config {

Result<std::string> absolute_path(std::string_view text);

// One address of one node and a port: somebody elsewhere has to reach it as it stands. `example` is
// such a one.
Result<Endpoint> reachable_endpoint(std::string_view text, std::string_view example);

// Both ends are within.
Result<ByteSize> size_from_to(std::string_view text, ByteSize min, ByteSize max);
Result<std::chrono::seconds> seconds_from_to(std::string_view text, std::chrono::seconds min,
                                             std::chrono::seconds max);

// "800Mbit", "1.5gbit": bits a second.
Result<std::uint64_t> bit_rate_from_to(std::string_view text, std::uint64_t min, std::uint64_t max);

// An IPv4 address that an interface may have.
Result<std::string> interface_address(std::string_view text);

// "1%", "0.5%", "100%": a share from `min`, such as 0.01, to 1.
Result<double> share_from_to_all(std::string_view text, double min);

Result<std::chrono::nanoseconds> duration_to(std::string_view text, std::chrono::nanoseconds max);

// The same as parsers for ConfigTable::parsed().
inline auto share_from(double min) {
  return [=](std::string_view text) { return share_from_to_all(text, min); };
}
inline auto size_between(ByteSize min, ByteSize max) {
  return [=](std::string_view text) { return size_from_to(text, min, max); };
}
// Bytes a second that are fetched in the background; 0: no limit.
Result<ByteSize> fetch_rate(std::string_view text);
inline auto seconds_between(std::chrono::seconds min, std::chrono::seconds max) {
  return [=](std::string_view text) { return seconds_from_to(text, min, max); };
}
inline auto duration_up_to(std::chrono::nanoseconds max) {
  return [=](std::string_view text) { return duration_to(text, max); };
}
inline auto bit_rate_between(std::uint64_t min, std::uint64_t max) {
  return [=](std::string_view text) { return bit_rate_from_to(text, min, max); };
}

}  // namespace mariner::config
