// The configuration's parser: an administrator's file may hold anything.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/check.h"
#include "server/node/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto reading =
      mariner::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  // Either it is valid, or something says why not.
  CHECK(reading.config.has_value() || !reading.problems.empty());
  for (const auto& problem : reading.problems) (void)to_string(problem);
  return 0;
}
