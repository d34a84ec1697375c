#include "tests/bench/cpu_time.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace mariner::bench {

namespace {

double ticks_per_s() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

CpuTime CpuTime::of_self() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_nvcsw + usage.ru_nivcsw};
}

CpuTime CpuTime::of_process(int pid) {
  if (pid == 0) return {};
  return of_stat(first_line("/proc/" + std::to_string(pid) + "/stat"), ticks_per_s());
}

CpuTime CpuTime::of_machine() { return of_machine_stat(first_line("/proc/stat"), ticks_per_s()); }

CpuTime CpuTime::of_stat(const std::string& stat, double ticks_per_s) {
  // The second field is the program's name in parentheses, which may have spaces and parentheses.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;  // utime and stime are fields 14 and 15
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) return {};
  return {user / ticks_per_s, system / ticks_per_s};
}

CpuTime CpuTime::of_machine_stat(const std::string& stat, double ticks_per_s) {
  std::istringstream fields(stat);
  std::string name;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  double irq = 0;
  double softirq = 0;
  fields >> name >> user >> nice >> system >> idle >> waiting >> irq >> softirq;
  if (!fields || name != "cpu") return {};
  return {(user + nice) / ticks_per_s, (system + irq + softirq) / ticks_per_s};
}

}  // namespace mariner::bench
