// Parsers of values that several sections of the configuration have. kInvalidArgument, with what
// was expected and what was found.
#pragma once

#include <chrono>
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

// The same as parsers for ConfigTable::parsed().
inline auto size_between(ByteSize min, ByteSize max) {
  return [=](std::string_view text) { return size_from_to(text, min, max); };
}
inline auto seconds_between(std::chrono::seconds min, std::chrono::seconds max) {
  return [=](std::string_view text) { return seconds_from_to(text, min, max); };
}

}  // namespace mariner::config
