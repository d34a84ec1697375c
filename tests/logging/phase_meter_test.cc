#include "logging/phase_meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/latency_disk.h"
#include "tests/sim/timed_drive.h"

namespace mariner::logging {
namespace {

using mariner::test::LatencyDisk;
using mariner::test::SimulatedDrive;
using mariner::test::TimedDrive;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kMany = 1'000'000;

// 100 sectors in 10 ms; each track begins 1.4 ms after the one before.
SimulatedDrive::Options small_drive(double speed_deviation = 0) {
  const Zone zone{0, 1000, 100};
  return {.geometry = *Geometry::make(
              {.sector_bytes = 512, .rotation = milliseconds(10), .zones = {&zone, 1}}),
          .heads = 2,
          .controller_delay = microseconds(100),
          .settle = microseconds(200),
          .track_switch = microseconds(1200),
          .seek_average = microseconds(9500),
          .seek_full = microseconds(15700),
          .speed_deviation = speed_deviation,
          .speed_memory = milliseconds(500),
          .seed = 5};
}

void expect_phase(PhaseMeter& meter, std::uint64_t from, std::uint64_t to, double expected,
                  double tolerance) {
  const Result<double> phase = meter.phase(from, to);
  ASSERT_TRUE(phase.has_value()) << phase.error().message;
  EXPECT_TRUE(*phase >= 0 && *phase < 1) << *phase;
  EXPECT_LT(std::abs(around(*phase - expected)), tolerance)
      << from << " to " << to << ": " << *phase;
}

TEST(Around, IsTheShortestWayAroundTheCircle) {
  EXPECT_DOUBLE_EQ(around(0.25), 0.25);
  EXPECT_DOUBLE_EQ(around(0.75), -0.25);
  EXPECT_DOUBLE_EQ(around(-3.0), 0);
  EXPECT_DOUBLE_EQ(around(0.5), -0.5);
}

TEST(PhaseMeter, OneSectorComesByOncePerRevolution) {
  TimedDrive disk({.drive = small_drive()});
  PhaseMeter meter(disk, kMany);
  const auto repetition = meter.repeat(30);
  ASSERT_TRUE(repetition.has_value());
  EXPECT_TRUE(repetition->steady);
  EXPECT_LT(std::abs((repetition->median - milliseconds(10)).count()), 50);
  EXPECT_EQ(meter.commands(), PhaseMeter::kRepetitions + 1u);
  EXPECT_EQ(meter.commands(), disk.commands());
}

TEST(PhaseMeter, AnglesAreThoseOfTheSectors) {
  TimedDrive disk({.drive = small_drive()});
  PhaseMeter meter(disk, kMany);
  ASSERT_TRUE(meter.repeat(0).has_value());
  expect_phase(meter, 0, 1, 0.01, 1e-4);
  expect_phase(meter, 1, 0, 0.99, 1e-4);
  expect_phase(meter, 10, 60, 0.5, 1e-4);
  expect_phase(meter, 99, 100, 0.01 + 0.14, 1e-4);  // over the end of a track
  expect_phase(meter, 0, 99'900, std::fmod(999 * 0.14, 1), 1e-4);
}

TEST(PhaseMeter, SpeedThatWandersAndLateCompletionsAreSortedOut) {
  // Lateness of 60 us is 0.006 revolutions; a hiccup is up to a whole one.
  TimedDrive disk({.drive = small_drive(1e-4),
                   .late_max = microseconds(60),
                   .hiccups = 0.1,
                   .hiccup_max = milliseconds(10)});
  PhaseMeter meter(disk, kMany);
  const auto repetition = meter.repeat(0);
  ASSERT_TRUE(repetition.has_value());
  EXPECT_TRUE(repetition->steady);
  for (std::uint64_t sector = 0; sector < 100; ++sector) {
    expect_phase(meter, 0, sector, static_cast<double>(sector) / 100, 0.02);
  }
  EXPECT_LT(std::abs((meter.rotation() - milliseconds(10)).count()), 5000);
}

TEST(PhaseMeter, RandomTimesAreNotSteady) {
  LatencyDisk disk({.constant = milliseconds(4), .random = milliseconds(8)});
  PhaseMeter meter(disk, kMany);
  const auto repetition = meter.repeat(0);
  ASSERT_TRUE(repetition.has_value());
  EXPECT_FALSE(repetition->steady);
  EXPECT_GE(repetition->least, milliseconds(4));
  EXPECT_LE(repetition->most, milliseconds(12));
}

TEST(PhaseMeter, ConstantTimesAreSteadyButShowNoAngle) {
  LatencyDisk disk({.constant = milliseconds(8)});
  PhaseMeter meter(disk, kMany);
  ASSERT_TRUE(meter.repeat(0)->steady);
  expect_phase(meter, 0, 12'345, 0, 1e-9);
}

TEST(PhaseMeter, GivesUpOnAnAngleThatDoesNotHoldStill) {
  // Steady for as long as it is measured, and without any rhythm from then on.
  class Breaks final : public TimedDisk {
   public:
    Result<Time> access(std::uint64_t sector) override {
      return ++commands_ <= PhaseMeter::kRepetitions + 1 ? steady_.access(sector)
                                                         : now_ += microseconds(8000 + 300);
    }
    Time now_{0};
    int commands_ = 0;
    LatencyDisk steady_{{.constant = milliseconds(8)}};
  } disk;
  PhaseMeter meter(disk, kMany);
  ASSERT_TRUE(meter.repeat(0)->steady);
  const std::uint64_t before = meter.commands();
  const Result<double> phase = meter.phase(0, 7);
  ASSERT_FALSE(phase.has_value());
  EXPECT_EQ(phase.error().code, ErrorCode::kLimit);
  EXPECT_EQ(meter.commands() - before, 2u * PhaseMeter::kRoundsMax + 1);
}

TEST(PhaseMeter, GivesNoMoreCommandsThanItMay) {
  TimedDrive disk({.drive = small_drive()});
  PhaseMeter meter(disk, PhaseMeter::kRepetitions + 3);
  ASSERT_TRUE(meter.repeat(0).has_value());
  EXPECT_EQ(meter.phase(0, 1).error().code, ErrorCode::kLimit);
  EXPECT_EQ(disk.commands(), PhaseMeter::kRepetitions + 3u);
}

TEST(PhaseMeter, HandsOnWhatTheDiskReports) {
  TimedDrive disk({.drive = small_drive(), .fail_at = PhaseMeter::kRepetitions + 3});
  PhaseMeter meter(disk, kMany);
  ASSERT_TRUE(meter.repeat(0).has_value());
  EXPECT_EQ(meter.phase(0, 1).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::logging
