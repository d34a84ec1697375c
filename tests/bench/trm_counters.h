// What the processes of mariner-trm-load count, in memory that they share.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "proto/check.h"

namespace mariner::bench {

inline constexpr std::size_t kTrmReceiversMax = 8;

struct TrmReceiverCounters {
  std::atomic<std::uint64_t> writes{0};  // that came whole, in order
  std::atomic<std::uint64_t> bytes{0};   // of their payloads
  std::atomic<std::uint64_t> bad{0};     // that have other bytes, or another number, than were sent
  std::atomic<std::uint64_t> missed{0};  // numbers that were skipped
  std::atomic<std::uint64_t> cpu_us{0};  // of the process
};

struct TrmCounters {
  std::array<TrmReceiverCounters, kTrmReceiversMax> receivers;
  std::atomic<std::uint32_t> ready{0};  // receivers that listen

  // Shared with the processes that are forked from this one.
  [[nodiscard]] static TrmCounters& shared() {
    void* const place = mmap(nullptr, sizeof(TrmCounters), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(place != MAP_FAILED);
    return *std::construct_at(static_cast<TrmCounters*>(place));
  }
};

// What has passed the network interfaces of this process's namespace, loopback left out, in bytes
// of Ethernet frames (without preamble and checksum).
struct WireBytes {
  std::uint64_t sent = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t received = 0;
  std::uint64_t received_packets = 0;

  [[nodiscard]] static WireBytes of_self() {
    WireBytes all;
    std::ifstream file("/proc/self/net/dev");  // proc(5)
    std::string line;
    while (std::getline(file, line)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos || line.find("lo:") != std::string::npos) continue;
      std::istringstream numbers(line.substr(colon + 1));
      std::array<std::uint64_t, 10> each{};
      for (std::uint64_t& number : each) numbers >> number;
      all.received += each[0];
      all.received_packets += each[1];
      all.sent += each[8];
      all.sent_packets += each[9];
    }
    return all;
  }
  friend WireBytes operator-(const WireBytes& a, const WireBytes& b) {
    return {a.sent - b.sent, a.sent_packets - b.sent_packets, a.received - b.received,
            a.received_packets - b.received_packets};
  }
};

// What the first processor has done: user, nice, system, interrupts (proc(5)).
[[nodiscard]] inline double first_processor_s() {
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("cpu0 ")) continue;
  std::istringstream numbers(line.substr(std::min<std::size_t>(line.size(), 5)));
  std::array<double, 7> each{};  // user, nice, system, idle, iowait, irq, softirq
  for (double& number : each) numbers >> number;
  return (each[0] + each[1] + each[2] + each[5] + each[6]) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct CpuSeconds {
  double user = 0;
  double system = 0;

  [[nodiscard]] static CpuSeconds of_self() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
  }
};

}  // namespace mariner::bench
