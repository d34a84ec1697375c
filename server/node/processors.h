// The processors of this machine, as far as the daemon may use them.
#pragma once

#include <sched.h>

#include <cstddef>
#include <thread>

namespace mariner::node {

[[nodiscard]] inline std::size_t usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();  // more than the set has room for
}

}  // namespace mariner::node
