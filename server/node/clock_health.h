// Whether the machine's clock, by which moments are named, can be trusted: as adjtimex(2) tells.
#pragma once

#include <cstdint>
#include <string>

namespace mariner::node {

struct ClockHealth {
  bool well = false;
  std::string text;
  std::string advice;  // empty: none
};

// `state` is what adjtimex() returned, `error` errno if that was negative; `steps`: how often the
// clock was seen to jump.
[[nodiscard]] ClockHealth clock_health(int state, int error, std::uint64_t steps);

}  // namespace mariner::node
