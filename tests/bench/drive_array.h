// The log disks of one experiment: simulated drives under the log's own policy and placement, fed
// with requests of one size at a fixed interval, in virtual time.
//
// This is the dissertation's "stand-alone Trail device" (4.6.3): no network, no processor time, no
// log format beyond a header sector for each record. What it measures is the placement, the policy
// and the drives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "logging/active_disk.h"
#include "logging/rotational_placement.h"
#include "tests/sim/simulated_drive.h"
#include "tests/support/manual_executor.h"

namespace mariner::bench {

using Time = std::chrono::nanoseconds;

struct ArrayOptions {
  std::size_t disks = 1;
  std::size_t zone = 0;  // of each drive: the log lies in it alone
  Time t_wait{std::chrono::microseconds(200)};
  Time t_idle{std::chrono::milliseconds(50)};
  double t_switch = 12;
  std::uint32_t look_ahead_sectors = 22;
  bool whole_batches = false;  // a queue goes out in one piece, as in the dissertation
  std::uint64_t seed = 1;
};

struct Load {
  std::uint32_t payload_bytes = 4096;
  Time interval{0};  // 0: each request is sent when the one before has completed
  std::size_t requests = 20'000;
  bool random_intervals = false;  // exponentially distributed ones, `interval` on average
};

struct Measured {
  double latency_ms_mean = 0;
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
  ~DriveArray();

  // Starts with fresh tracks and heads whose positions are known. Once only.
  Measured run(const Load& load);

 private:
  struct Request {
    Time arrived{0};
  };
  struct Disk {
    std::unique_ptr<test::SimulatedDrive> drive;
    std::unique_ptr<logging::RotationalPlacement> placement;
    std::uint64_t tracks_taken = 0;
    std::deque<Request> queue;
  };

  void arrive();
  [[nodiscard]] Time next_interval();
  void pump();
  void assign_waiting();
  void dispatch(std::size_t number);
  [[nodiscard]] logging::SectorRange take_track(Disk& disk) const;
  void switch_track(std::size_t number);
  void position(std::size_t number);
  void watch_idle(std::size_t number);
  void wake_at(Time time);
  void completed(std::size_t number, logging::SectorRange range);
  [[nodiscard]] Measured measured(Time began) const;

  const ArrayOptions options_;
  Load load_;
  std::uint32_t record_sectors_ = 0;
  test::ManualExecutor executor_;
  logging::ActiveDisk policy_;
  std::vector<Disk> disks_;
  std::deque<Request> waiting_;  // no disk had room
  std::vector<std::byte> zeros_;
  std::optional<Time> wake_;

  std::mt19937_64 random_;
  std::size_t arrived_ = 0;
  std::vector<Time> latencies_;
  std::size_t batches_ = 0;
  double left_utilization_ = 0;
  std::size_t left_tracks_ = 0;
};

}  // namespace mariner::bench
