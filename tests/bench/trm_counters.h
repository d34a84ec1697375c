// What the processes of mariner-trm-load count, in memory that they share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
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

// For how long the first processor has done anything since the system's start, interrupts included:
// the time without what the kernel counts as idle, in nanoseconds (proc(5): /proc/timer_list; exact
// when asked on that processor). What /proc/stat says of user, system and interrupts is sampled by
// a timer's interrupt, which is far off for who is woken by timers. Nothing where that file is not
// to be read.
[[nodiscard]] inline std::optional<double> first_processor_s() {
  std::ifstream file("/proc/timer_list");
  std::string line;
  while (std::getline(file, line) && line != "cpu: 0") continue;
  double idle = 0;
  int found = 0;
  while (found < 2 && std::getline(file, line) && !line.starts_with("cpu: ")) {
    if (!line.starts_with("  .idle_sleeptime") && !line.starts_with("  .iowait_sleeptime"))
      continue;
    idle += std::stod(line.substr(line.find(':') + 1)) / 1e9;
    ++found;
  }
  if (found < 2) return std::nullopt;
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count() - idle;
}

}  // namespace mariner::bench
