// The CPU time of a process with all its threads, those of io_uring's workers included; or of the
// whole machine.
#pragma once

#include <cstdint>
#include <string>

namespace mariner::bench {

struct CpuTime {
  double user_s = 0;
  double system_s = 0;
  std::int64_t context_switches = 0;  // of_self() alone knows them

  [[nodiscard]] static CpuTime of_self();
  // To the clock tick, mostly 10 ms. All zeros: there is no such process, or `pid` is 0.
  [[nodiscard]] static CpuTime of_process(int pid);
  // Of all programs and the kernel, on all processors; sampled by the clock tick. What another
  // machine has stolen is none of it.
  [[nodiscard]] static CpuTime of_machine();
  // From what /proc/PID/stat, or the first line of /proc/stat, says (proc(5)); all zeros if it says
  // something else.
  [[nodiscard]] static CpuTime of_stat(const std::string& stat, double ticks_per_s);

  [[nodiscard]] static CpuTime of_machine_stat(const std::string& stat, double ticks_per_s);

  [[nodiscard]] double total_s() const { return user_s + system_s; }
  friend CpuTime operator-(const CpuTime& a, const CpuTime& b) {
    return {a.user_s - b.user_s, a.system_s - b.system_s, a.context_switches - b.context_switches};
  }
};

}  // namespace mariner::bench
