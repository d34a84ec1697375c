// The log disks of one experiment: the real log on simulated drives, fed with records of one size
// at a fixed interval, in virtual time.
//
// This is the dissertation's "stand-alone Trail device" (4.6.3): no network and no processor time;
// otherwise the log as the daemon runs it. Each drive is formatted, recovered and written by
// logging's own code, and the log goes round: complete tracks are given up as room gets scarce.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "proto/payload.h"
#include "tests/sim/simulated_log.h"
#include "tests/support/manual_executor.h"

namespace mariner::bench {

using Time = std::chrono::nanoseconds;

struct ArrayOptions {
  std::size_t disks = 1;
  std::size_t zone = 0;      // of each drive: the log lies in it alone
  std::uint64_t tracks = 0;  // of the log on each drive; 0: as many as the zone has
  Time t_wait{std::chrono::microseconds(200)};
  Time t_idle{std::chrono::milliseconds(50)};
  double t_switch = 12;
  std::uint32_t look_ahead_sectors = 22;
  std::uint64_t seed = 1;
};

struct Load {
  std::uint32_t payload_bytes = 4096;  // of each record: whole blocks, or none
  Time interval{0};                    // 0: each request is sent when the one before has completed
  std::size_t requests = 20'000;
  bool random_intervals = false;  // exponentially distributed ones, `interval` on average
};

struct Measured {
  double latency_ms_mean = 0;  // from append() to its completion
  double latency_ms_min = 0;
  double latency_ms_p50 = 0;
  double latency_ms_p99 = 0;
  double rate_s = 0;            // requests completed in a second of virtual time
  double batch_bytes_mean = 0;  // of payload in one physical write
  double utilization = 0;       // of the tracks that were left, 0 to 1
  double busy = 0;              // of the drives, 0 to 1
  double seconds = 0;           // of virtual time
};

class DriveArray {
 public:
  explicit DriveArray(const ArrayOptions& options);

  // Starts with fresh tracks and heads whose positions are known. Once only.
  Measured run(const Load& load);

  // Tracks that were given up and could be taken again.
  [[nodiscard]] std::uint64_t recycled_tracks();

 private:
  void arrive();
  [[nodiscard]] Time next_interval();
  void completed(Time arrived, const Result<logging::LoggedAt>& at);
  [[nodiscard]] Measured measured(Time began);

  const ArrayOptions options_;
  Load load_;
  Payload payload_;
  test::ManualExecutor executor_;
  test::SimulatedLog log_;

  std::mt19937_64 random_;
  std::size_t arrived_ = 0;
  std::vector<Time> latencies_;
  std::size_t batches_ = 0;
};

}  // namespace mariner::bench
