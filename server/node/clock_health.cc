#include "server/node/clock_health.h"

#include <sys/timex.h>

#include <cstring>

namespace mariner::node {

ClockHealth clock_health(int state, int error, std::uint64_t steps) {
  const std::string seen = ", " + std::to_string(steps) + " steps seen since start";
  if (state < 0) {
    return {false, std::string("not known: adjtimex: ") + std::strerror(error) + seen,
            "let marinerd ask: its service must allow the system call clock_adjtime"};
  }
  if (state == TIME_ERROR) {
    return {false, "not synchronised" + seen,
            "run chrony or systemd-timesyncd: moments are named by this clock"};
  }
  return {steps == 0, "synchronised" + seen, ""};
}

}  // namespace mariner::node
