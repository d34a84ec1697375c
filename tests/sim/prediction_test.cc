// The rotational placement against the simulated drive: what the one predicts, the other does.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "logging/rotational_placement.h"
#include "tests/sim/simulated_drive.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using logging::ConstBytes;
using logging::Durability;
using logging::RotationalPlacement;
using logging::SectorRange;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = SimulatedDrive::Time;

constexpr std::uint32_t kSector = SimulatedDrive::kSectorBytes;

class Prediction : public ::testing::Test {
 protected:
  explicit Prediction(double speed_deviation = 0) {
    auto options = SimulatedDrive::deskstar(11);
    options.speed_deviation = speed_deviation;
    drive_ = std::make_unique<SimulatedDrive>(executor_, options);
    placement_ = std::make_unique<RotationalPlacement>(
        RotationalPlacement::Options{.rotation = options.geometry.rotation(),
                                     .command_delay = options.controller_delay,
                                     .track_skew = options.track_skew()});
  }

  void start_track(std::uint64_t number) {
    placement_->start_track(drive_->geometry().track(number), {}, executor_.monotonic_time());
  }
  // Runs one command to its end and tells the placement.
  void run(SectorRange range, bool writes) {
    std::vector<std::byte> bytes(std::size_t{range.count} * kSector);
    bool done = false;
    auto completion = [&](Result<void>) {
      placement_->completed(range, executor_.monotonic_time());
      done = true;
    };
    if (writes) {
      drive_->async_write(range.first * kSector, {ConstBytes(bytes)}, Durability::kDurable,
                          completion);
    } else {
      drive_->async_read(range.first * kSector, bytes, completion);
    }
    executor_.run_until_idle();
    ASSERT_TRUE(done);
  }
  void measure_position() {
    run({*placement_->recalibration_sector(executor_.monotonic_time()), 1}, false);
  }
  // Writes a batch where the placement says; returns by how much its end was later than predicted.
  Time write(std::uint32_t sectors) {
    const Time now = executor_.monotonic_time();
    const auto place = placement_->place(sectors, now);
    placement_->dispatched({place->sector, sectors}, now);
    run({place->sector, sectors}, true);
    return executor_.monotonic_time() - place->done;
  }

  ManualExecutor executor_;
  std::unique_ptr<SimulatedDrive> drive_;
  std::unique_ptr<RotationalPlacement> placement_;
};

class PredictionOfAnUnevenDrive : public Prediction {
 protected:
  PredictionOfAnUnevenDrive() : Prediction(1e-4) {}
};

TEST_F(Prediction, IsExactOnADriveThatTurnsEvenly) {
  std::mt19937_64 random(3);
  start_track(0);
  measure_position();
  for (std::uint64_t track = 0; track < 50; ++track) {
    if (track > 0) start_track(track);  // the first batch finds its way without a measurement
    for (int batch = 0; batch < 8; ++batch) {
      executor_.advance(microseconds(random() % 20'000));
      const auto sectors = static_cast<std::uint32_t>(1 + random() % 60);
      const Time late = write(sectors);
      ASSERT_LT(std::abs(late.count()), 2'000) << "track " << track << ", batch " << batch;
    }
  }
}

TEST_F(Prediction, NeedsAMeasurementOnADistantTrack) {
  start_track(0);
  measure_position();
  start_track(50'000);
  measure_position();
  EXPECT_LT(std::abs(write(9).count()), 2'000);
}

TEST_F(PredictionOfAnUnevenDrive, GetsWorseWithTheTimeSinceTheLastAccess) {
  start_track(0);
  measure_position();
  std::uint64_t track = 0;
  const auto missed_of_200 = [&](Time idle) {
    int missed = 0;
    for (int i = 0; i < 200; ++i) {
      start_track(++track);
      measure_position();
      executor_.advance(idle);
      if (write(9) > milliseconds(5)) ++missed;
    }
    return missed;
  };
  EXPECT_EQ(missed_of_200(milliseconds(10)), 0);
  EXPECT_LE(missed_of_200(milliseconds(50)), 2);
  EXPECT_GE(missed_of_200(milliseconds(400)), 20);
}

}  // namespace
}  // namespace mariner::test
