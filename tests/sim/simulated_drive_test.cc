#include "tests/sim/simulated_drive.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using logging::ConstBytes;
using logging::Durability;
using logging::Geometry;
using logging::Zone;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = SimulatedDrive::Time;

constexpr std::uint32_t kSectorBytes = SimulatedDrive::kSectorBytes;

// Turns evenly: 100 sectors in 10 ms, two heads, 500 cylinders.
SimulatedDrive::Options even_drive() {
  const Zone zone{0, 1000, 100};
  return {.geometry = *Geometry::make(
              {.sector_bytes = kSectorBytes, .rotation = milliseconds(10), .zones = {&zone, 1}}),
          .heads = 2,
          .controller_delay = microseconds(100),
          .settle = microseconds(200),
          .track_switch = microseconds(1200),
          .seek_average = microseconds(9500),
          .seek_full = microseconds(15700),
          .seed = 7};
}

class SimulatedDriveTest : public ::testing::Test {
 protected:
  // The time that a write of zeros, or the read of as much, takes when it is submitted now.
  Time write(std::uint64_t sector, std::uint32_t count) { return measure(sector, count, true); }
  Time read(std::uint64_t sector, std::uint32_t count) { return measure(sector, count, false); }

  Time measure(std::uint64_t sector, std::uint32_t count, bool writes) {
    std::vector<std::byte> bytes(std::size_t{count} * kSectorBytes);
    const Time began = executor_.monotonic_time();
    Time ended{-1};
    auto done = [&](Result<void> result) {
      EXPECT_TRUE(result.has_value());
      ended = executor_.monotonic_time();
    };
    if (writes) {
      drive_.async_write(sector * kSectorBytes, {ConstBytes(bytes)}, Durability::kDurable, done);
    } else {
      drive_.async_read(sector * kSectorBytes, bytes, done);
    }
    executor_.run_until_idle();
    return ended - began;
  }
  static void expect_near(Time actual, Time expected) {
    EXPECT_NEAR(static_cast<double>(actual.count()), static_cast<double>(expected.count()), 50);
  }

  ManualExecutor executor_;
  SimulatedDrive drive_{executor_, even_drive()};
};

TEST_F(SimulatedDriveTest, TakesItsTimeForEachPartOfACommand) {
  write(0, 10);
  // Three sectors pass during controller delay and settling; the fourth to come is reached.
  expect_near(write(13, 5), microseconds(300 + 500));
  expect_near(write(22, 5), microseconds(400 + 500));
}

TEST_F(SimulatedDriveTest, ASectorJustMissedCostsARevolution) {
  write(0, 10);
  expect_near(write(12, 5), milliseconds(10) + microseconds(200 + 500));
}

TEST_F(SimulatedDriveTest, TurnsOnWhileItIsIdle) {
  write(0, 10);
  executor_.advance(microseconds(10'000 * 3 + 1'000));
  expect_near(write(23, 1), microseconds(300 + 100));
}

TEST_F(SimulatedDriveTest, ReadsTakeAsLongAsWrites) {
  write(0, 10);
  expect_near(read(13, 1), microseconds(400));
}

TEST_F(SimulatedDriveTest, TheSameSectorOfTheNextTrackComesOneSkewLater) {
  write(0, 10);
  // From behind sector 10: delay, switch, settling; skewed by switch and settling, sector 11 of the
  // next track comes by 1.4 ms after sector 11 of this one.
  expect_near(write(100 + 11, 1), microseconds(100 + 1400 + 100));
}

TEST_F(SimulatedDriveTest, CrossesTheEndOfATrackWithoutLosingARevolution) {
  write(0, 10);
  expect_near(write(90, 20), microseconds(8000 + 1000 + 1400 + 1000));
}

TEST_F(SimulatedDriveTest, SeeksLongerOverMoreCylinders) {
  // Rotation is averaged out by the least of many starts.
  const auto shortest = [this](std::uint64_t track) {
    Time least = milliseconds(100);
    for (std::uint32_t sector = 0; sector < 100; ++sector) {
      write(0, 1);
      least = std::min(least, write(track * 100 + sector, 1));
    }
    return least;
  };
  const Time neighbour = shortest(2);
  const Time third = shortest(334);
  const Time all = shortest(999);
  EXPECT_NEAR(static_cast<double>(neighbour.count()), 1.6e6, 2e5);
  EXPECT_NEAR(static_cast<double>(third.count()), 9.9e6, 3e5);
  EXPECT_NEAR(static_cast<double>(all.count()), 16.1e6, 3e5);
}

TEST_F(SimulatedDriveTest, ServesOneCommandAtATimeInOrder) {
  std::vector<std::byte> bytes(kSectorBytes);
  std::vector<int> order;
  std::vector<Time> times;
  for (const int number : {0, 1, 2}) {
    const std::uint64_t sector = number == 1 ? 0 : 50;  // a queue of the drive's own would reorder
    drive_.async_write(sector * kSectorBytes, {ConstBytes(bytes)}, Durability::kDurable,
                       [&, number](Result<void>) {
                         order.push_back(number);
                         times.push_back(executor_.monotonic_time());
                       });
  }
  EXPECT_EQ(drive_.in_flight(), 3u);
  executor_.run_until_idle();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
  expect_near(times[1] - times[0], milliseconds(5));
  expect_near(times[2] - times[1], milliseconds(5));
  EXPECT_EQ(drive_.busy_time(), times[2]);
}

TEST_F(SimulatedDriveTest, KeepsWhatWasWritten) {
  std::vector<std::byte> bytes(3 * kSectorBytes, std::byte{0x5a});
  bytes[kSectorBytes] = std::byte{1};
  drive_.async_write(
      7 * kSectorBytes,
      {ConstBytes(bytes).first(kSectorBytes), ConstBytes(bytes).subspan(kSectorBytes)},
      Durability::kDurable, [](Result<void> result) { EXPECT_TRUE(result.has_value()); });
  std::vector<std::byte> early(kSectorBytes);
  EXPECT_TRUE(drive_.read(7 * kSectorBytes, early).has_value());
  EXPECT_EQ(early[0], std::byte{0}) << "not before its time";
  executor_.run_until_idle();
  std::vector<std::byte> back(5 * kSectorBytes);
  EXPECT_TRUE(drive_.read(6 * kSectorBytes, back).has_value());
  EXPECT_EQ(back[kSectorBytes - 1], std::byte{0});
  EXPECT_EQ(back[kSectorBytes], std::byte{0x5a});
  EXPECT_EQ(back[2 * kSectorBytes], std::byte{1});
  EXPECT_EQ(back[4 * kSectorBytes], std::byte{0});
}

TEST_F(SimulatedDriveTest, BlockingCallsTakeNoTime) {
  const std::vector<std::byte> bytes(kSectorBytes, std::byte{3});
  const std::vector<ConstBytes> parts{ConstBytes(bytes)};
  EXPECT_TRUE(drive_.write(kSectorBytes, parts, Durability::kVolatile).has_value());
  EXPECT_TRUE(drive_.flush().has_value());
  std::vector<std::byte> back(kSectorBytes);
  EXPECT_TRUE(drive_.read(kSectorBytes, back).has_value());
  EXPECT_EQ(back, bytes);
  EXPECT_TRUE(drive_.discard({0, std::uint64_t{64} * kSectorBytes}).has_value());
  EXPECT_TRUE(drive_.read(kSectorBytes, back).has_value());
  EXPECT_EQ(back[0], std::byte{0});
  EXPECT_EQ(executor_.monotonic_time(), Time{0});
}

TEST_F(SimulatedDriveTest, APowerCutKeepsTheSectorsThatHavePassedUnderTheHead) {
  write(0, 10);
  const std::vector<std::byte> bytes(20 * kSectorBytes, std::byte{7});
  std::string results;
  const auto submit = [&](std::uint64_t sector) {
    drive_.async_write(
        sector * kSectorBytes,
        {ConstBytes(bytes).first(3 * kSectorBytes), ConstBytes(bytes).subspan(3 * kSectorBytes)},
        Durability::kDurable, [&](Result<void> result) { results += result ? "ok " : "failed "; });
  };
  submit(13);
  submit(200);
  executor_.advance(microseconds(300 + 750));  // the first sector comes by after 300 us
  drive_.cut_power();
  EXPECT_EQ(results, "") << "not within the call";
  std::vector<std::byte> back(kSectorBytes);
  EXPECT_FALSE(drive_.read(0, back).has_value());
  submit(300);
  executor_.run_until_idle();
  EXPECT_EQ(results, "failed failed failed ");
  drive_.restore_power();
  std::string kept;
  for (std::uint64_t sector = 12; sector < 24; ++sector) {
    EXPECT_TRUE(drive_.read(sector * kSectorBytes, back).has_value());
    kept += back[0] == std::byte{7} ? '7' : '.';
  }
  EXPECT_EQ(kept, ".7777777....");
  for (const std::uint64_t sector : {200, 300}) {
    EXPECT_TRUE(drive_.read(sector * kSectorBytes, back).has_value());
    EXPECT_EQ(back[0], std::byte{0});
  }
  write(13, 20);
  EXPECT_EQ(drive_.in_flight(), 0u);
}

TEST_F(SimulatedDriveTest, RefusesWhatLiesBehindItsEnd) {
  std::vector<std::byte> bytes(2 * kSectorBytes);
  const std::uint64_t last = drive_.size_bytes() - kSectorBytes;
  EXPECT_FALSE(drive_.read(last, bytes).has_value());
  bool refused = false;
  drive_.async_write(last, {ConstBytes(bytes)}, Durability::kDurable,
                     [&](Result<void> result) { refused = !result.has_value(); });
  executor_.run_until_idle();
  EXPECT_TRUE(refused);
}

// How far off the nominal turning is after `idle`, in time, one standard deviation of many.
double spread_us(Time idle) {
  auto options = even_drive();
  options.speed_deviation = 1e-3;
  options.speed_memory = milliseconds(500);
  double squares = 0;
  constexpr int kDrives = 400;
  for (int i = 0; i < kDrives; ++i) {
    options.seed = 1000 + static_cast<std::uint64_t>(i);
    ManualExecutor executor;
    SimulatedDrive drive(executor, options);
    std::vector<std::byte> bytes(kSectorBytes);
    const auto write = [&](std::uint64_t sector) {
      drive.async_write(sector * kSectorBytes, {ConstBytes(bytes)}, Durability::kDurable,
                        [](Result<void>) {});
      executor.run_until_idle();
    };
    write(0);
    const Time first = executor.monotonic_time();
    executor.advance(idle);
    write(51);
    const double turned = static_cast<double>((executor.monotonic_time() - first).count()) / 1e3;
    const double off = std::remainder(turned - 5100, 10'000);
    squares += off * off;
  }
  return std::sqrt(squares / kDrives);
}

TEST(SimulatedDriveJitter, GrowsWithTheTimeSinceTheLastAccess) {
  const double at_10 = spread_us(milliseconds(10));
  const double at_100 = spread_us(milliseconds(100));
  const double at_1000 = spread_us(milliseconds(1000));
  // The deviation times the time, as long as the speed stays what it was; then less than that.
  EXPECT_NEAR(at_10, 15, 4);  // the wait for the sector counts, too
  EXPECT_NEAR(at_100, 100, 15);
  EXPECT_GT(at_1000, 400);
  EXPECT_LT(at_1000, 1000);
}

TEST(SimulatedDriveJitter, ComesFromTheSeed) {
  const auto trace = [](std::uint64_t seed) {
    ManualExecutor executor;
    SimulatedDrive drive(executor, SimulatedDrive::deskstar(seed));
    std::vector<std::byte> bytes(kSectorBytes);
    std::vector<Time> times;
    for (std::uint64_t i = 0; i < 50; ++i) {
      drive.async_write(i * 977 * kSectorBytes, {ConstBytes(bytes)}, Durability::kDurable,
                        [&](Result<void>) { times.push_back(executor.monotonic_time()); });
      executor.run_until_idle();
      executor.advance(milliseconds(20));
    }
    return times;
  };
  EXPECT_EQ(trace(1), trace(1));
  EXPECT_NE(trace(1), trace(2));
}

TEST(SimulatedDriveDeskstar, IsTheDriveOfThePaper) {
  const auto options = SimulatedDrive::deskstar(1);
  EXPECT_NEAR(static_cast<double>(options.geometry.bytes()), 30.7e9, 0.1e9);
  EXPECT_EQ(options.geometry.rotation(), Time(8'333'333));
  EXPECT_EQ(options.controller_delay, microseconds(104));
}

}  // namespace
}  // namespace mariner::test
