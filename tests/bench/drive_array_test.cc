#include "tests/bench/drive_array.h"

#include <gtest/gtest.h>

namespace mariner::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(DriveArray, WritesALoneRequestInHalfAMillisecond) {
  DriveArray array({.t_switch = 1e-3});  // to a fresh track each time
  const Measured measured = array.run({.interval = milliseconds(10), .requests = 500});
  EXPECT_LT(measured.latency_ms_p99, 0.55);
  EXPECT_DOUBLE_EQ(measured.batch_bytes_mean, 4096);
}

TEST(DriveArray, IsTheSameForTheSameSeed) {
  const auto once = [](std::uint64_t seed) {
    return DriveArray({.disks = 2, .seed = seed})
        .run({.interval = microseconds(300), .requests = 1000, .random_intervals = true})
        .latency_ms_mean;
  };
  EXPECT_EQ(once(1), once(1));
  EXPECT_NE(once(1), once(2));
}

TEST(DriveArray, WritesOneAfterAnotherWithoutAnInterval) {
  const Measured measured = DriveArray({.disks = 3}).run({.requests = 300});
  EXPECT_DOUBLE_EQ(measured.batch_bytes_mean, 4096);
  EXPECT_LE(measured.busy, 1.05);
}

TEST(DriveArray, MeasuresTheHeadsPositionWhenItIsIdle) {
  const auto worst = [](Time t_idle) {
    return DriveArray({.t_idle = t_idle, .t_switch = 1e-3})
        .run({.interval = milliseconds(400), .requests = 300})
        .latency_ms_mean;
  };
  EXPECT_LT(worst(milliseconds(50)), 0.55);
  EXPECT_GT(worst(Time{0}), 1.0) << "or the drive turns too evenly to show anything";
}

// Under a load that never leaves a queue empty, tracks must not fill up until every write waits
// for the last gaps: that would end in ever longer queues.
TEST(DriveArray, KeepsUpWithSteadyLoad) {
  const Measured measured = DriveArray({.disks = 5, .t_wait = microseconds(360), .t_switch = 6})
                                .run({.interval = microseconds(60), .requests = 20'000});
  EXPECT_LT(measured.latency_ms_mean, 3);
  EXPECT_LT(measured.utilization, 0.95);
}

TEST(DriveArray, GoesRoundItsTracks) {
  DriveArray array({.disks = 2, .tracks = 20});
  const Measured measured =
      array.run({.interval = microseconds(300), .requests = 10'000});  // some 150 tracks
  EXPECT_GT(array.recycled_tracks(), 80u);
  EXPECT_LT(measured.latency_ms_mean, 2);
}

TEST(DriveArray, WritesRecordsWithoutPayload) {
  DriveArray array({.t_switch = 1e-3});
  const Measured measured =
      array.run({.payload_bytes = 0, .interval = milliseconds(10), .requests = 100});
  EXPECT_LT(measured.latency_ms_mean, 0.45);
  EXPECT_DOUBLE_EQ(measured.batch_bytes_mean, 0);
}

TEST(DriveArray, RecoversFromABurst) {
  DriveArray array({.disks = 2});
  const Measured measured = array.run({.interval = microseconds(1), .requests = 3000});
  EXPECT_GT(measured.rate_s, 5000) << "full speed, however deep the queue";
}

}  // namespace
}  // namespace mariner::bench
