// The experiments of dissertation 4.6.2 to 4.6.4 on simulated drives, in virtual time.
//
//   mariner-simdisk REQUESTS [EXPERIMENT...]     of each point; all experiments if none is named
//
// Prints one JSON object per point: {"experiment", "series", "x", and what was measured}.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/bench/drive_array.h"

namespace mariner::bench {
namespace {

using std::chrono::milliseconds;

// The six inter-request intervals of 4.6.4, in ms.
constexpr double kIntervals[] = {0.18, 0.16, 0.14, 0.12, 0.10, 0.08};
// With this t_switch every write goes to a fresh track, as in the first implementation (4.6.2).
constexpr double kFreshTrack = 1e-3;

Time from_ms(double ms) { return Time(static_cast<Time::rep>(ms * 1e6 + 0.5)); }

struct Point {
  std::string_view experiment;
  double series = 0;
  double x = 0;
};

void print(const Point& point, const Measured& m) {
  fmt::print(
      R"({{"experiment":"{}","series":{:g},"x":{:g},"latency_ms":{:.4f},"min_ms":{:.4f},)"
      R"("p50_ms":{:.4f},"p99_ms":{:.4f},"rate":{:.1f},"batch_bytes":{:.0f},"utilization":{:.4f},)"
      R"("busy":{:.4f},"virtual_s":{:.3f}}})"
      "\n",
      point.experiment, point.series, point.x, m.latency_ms_mean, m.latency_ms_min,
      m.latency_ms_p50, m.latency_ms_p99, m.rate_s, m.batch_bytes_mean, m.utilization, m.busy,
      m.seconds);
}

Measured run(const ArrayOptions& options, const Load& load) {
  return DriveArray(options).run(load);
}

// 4.7: latency against the interval between requests, nothing measured in between.
void idle_interval(std::size_t requests) {
  for (const double ms : {4, 6, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400}) {
    print({"4.7", 0, ms}, run({.t_idle = Time{0}, .t_switch = kFreshTrack},
                              {.interval = from_ms(ms), .requests = requests}));
  }
}

// 4.8: the least latency of many look-aheads around the usual one, against the size. A record has
// whole blocks of payload, or none.
void write_size(std::size_t requests) {
  constexpr std::uint32_t kAround = 20;
  for (const std::uint32_t blocks : {0, 1, 2, 3, 4, 6, 8}) {
    Measured least;
    for (std::uint32_t look_ahead = 22 - kAround; look_ahead <= 22 + kAround; ++look_ahead) {
      const Measured m = run({.t_switch = 0.3, .look_ahead_sectors = look_ahead},
                             {.payload_bytes = blocks * kBlockBytes, .requests = requests / 41});
      if (least.seconds == 0 || m.latency_ms_min < least.latency_ms_min) least = m;
    }
    print({"4.8", 0, blocks * 4.0}, least);
  }
}

// Table 4.2: t_wait at a request every 60 us.
void wait_limit(std::size_t requests) {
  for (const double ms : {0.0, 0.12, 0.24, 0.36, 0.48, 0.60, 0.72, 1.0}) {
    print({"table4.2", 0, ms}, run({.disks = 5, .t_wait = from_ms(ms), .t_switch = 6},
                                   {.interval = from_ms(0.06), .requests = requests}));
  }
}

void switch_threshold(std::size_t requests) {
  for (const double t_switch : {2, 4, 6, 8, 10, 12, 14}) {
    for (const double ms : kIntervals) {
      print({"4.9", t_switch, ms}, run({.disks = 5, .t_switch = t_switch},
                                       {.interval = from_ms(ms), .requests = requests}));
    }
  }
}

// The highest rate whose mean latency is still at most 2 ms, where the paper ends its curves.
Measured fastest(const ArrayOptions& options, std::size_t requests) {
  for (double rate = 6000.0 * static_cast<double>(options.disks);; rate /= 1.02) {
    const Measured m = run(options, {.interval = from_ms(1e3 / rate), .requests = requests});
    if (m.latency_ms_mean <= 2) return m;
  }
}

void number_of_disks(std::size_t requests) {
  for (const std::size_t disks : {1, 2, 3, 4, 5}) {
    const auto number = static_cast<double>(disks);
    // The same load for each disk: the paper's intervals, which five disks share.
    for (const double ms : kIntervals) {
      print({"4.10", number, ms},
            run({.disks = disks}, {.interval = from_ms(ms * 5 / number), .requests = requests}));
    }
    print({"4.10.fastest", 0, number}, fastest({.disks = disks}, requests));
  }
}

void wait_limit_and_rate(std::size_t requests) {
  for (const double t_wait : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
    for (const double ms : kIntervals) {
      print({"4.11", t_wait, ms}, run({.disks = 5, .t_wait = from_ms(t_wait)},
                                      {.interval = from_ms(ms), .requests = requests}));
    }
  }
}

// 4.12: how often the position is measured, under requests that come at random, rarely.
void recalibration(std::size_t requests) {
  for (const double ms : {5, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 400}) {
    print({"4.12", 0, ms},
          run({.t_idle = from_ms(ms), .t_switch = kFreshTrack},
              {.interval = milliseconds(300), .requests = requests, .random_intervals = true}));
  }
}

// 12,500 writes a second on five disks; t_wait as in the paper.
void headline(std::size_t requests) {
  for (const double t_switch : {6, 8, 10, 12}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      print({"headline", static_cast<double>(seed), t_switch},
            run({.disks = 5, .t_wait = from_ms(0.3), .t_switch = t_switch, .seed = seed},
                {.interval = from_ms(0.08), .requests = requests}));
    }
  }
}

// The same in steady state: a log so short that tracks are given up all the time.
void going_round(std::size_t requests) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    print({"round", static_cast<double>(seed), 8},
          run({.disks = 5, .tracks = 60, .t_wait = from_ms(0.3), .t_switch = 8, .seed = seed},
              {.interval = from_ms(0.08), .requests = 5 * requests}));
  }
}

const std::vector<std::pair<std::string_view, std::function<void(std::size_t)>>> kExperiments{
    {"4.7", idle_interval},    {"4.8", write_size},       {"table4.2", wait_limit},
    {"4.9", switch_threshold}, {"4.10", number_of_disks}, {"4.11", wait_limit_and_rate},
    {"4.12", recalibration},   {"headline", headline},    {"round", going_round},
};

int main_of(const std::vector<std::string_view>& arguments) {
  const long requests = arguments.empty() ? 0 : std::strtol(arguments[0].data(), nullptr, 10);
  if (requests < 100) {
    fmt::print(stderr, "usage: mariner-simdisk REQUESTS [EXPERIMENT...], REQUESTS at least 100\n");
    return 2;
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (std::ranges::find(kExperiments, arguments[i], [](const auto& e) { return e.first; }) !=
        kExperiments.end()) {
      continue;
    }
    fmt::print(stderr, "{}: no such experiment\n", arguments[i]);
    return 2;
  }
  for (const auto& [name, experiment] : kExperiments) {
    const bool named = std::find(arguments.begin() + 1, arguments.end(), name) != arguments.end();
    if (arguments.size() == 1 || named) experiment(static_cast<std::size_t>(requests));
  }
  return 0;
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) { return mariner::bench::main_of({argv + 1, argv + argc}); }
