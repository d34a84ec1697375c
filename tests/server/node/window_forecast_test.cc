#include "server/node/window_forecast.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1u << 20;

// A log that is told every ten seconds how much it was written.
class WindowForecastTest : public ::testing::Test {
 protected:
  static VersionTime at(seconds since) {
    return {static_cast<std::uint64_t>((hours(24 * 365) + since).count()) * 1'000'000'000};
  }
  void begin(seconds held = seconds(0), std::uint64_t used = 0) {
    forecast_.begin(at(now_ - held), at(now_), used);
  }
  void write(seconds during, std::uint64_t bytes_per_second) {
    for (const seconds end = now_ + during; now_ < end;) {
      now_ += seconds(10);
      written_ += bytes_per_second * 10;
      forecast_.sample(at(now_), written_);
    }
  }
  WindowForecast::Outlook outlook(seconds window, std::uint64_t room) {
    const auto found = forecast_.outlook(window, room);
    EXPECT_TRUE(found.has_value());
    return found.value_or(WindowForecast::Outlook{});
  }

  WindowForecast forecast_;
  seconds now_{0};
  std::uint64_t written_ = 0;
};

TEST_F(WindowForecastTest, NothingIsForeseenWithoutARate) {
  EXPECT_FALSE(forecast_.outlook(hours(1), kMiB).has_value());
  begin();
  EXPECT_FALSE(forecast_.outlook(hours(1), kMiB).has_value());
}

TEST_F(WindowForecastTest, AWindowThatFits) {
  begin();
  write(minutes(10), kMiB);
  const auto fits = outlook(hours(1), 3600 * kMiB + 600 * kMiB);
  EXPECT_EQ(fits.short_in, std::nullopt);
  EXPECT_EQ(fits.lasting, hours(1));
}

// An hour is 3,600 MiB; the log has room for half of it, and a sixth is there.
TEST_F(WindowForecastTest, ALogThatIsBeingFilledIsShortWhenItIsFull) {
  begin();
  write(minutes(10), kMiB);
  const auto soon = outlook(hours(1), 1800 * kMiB);
  ASSERT_TRUE(soon.short_in.has_value());
  EXPECT_NEAR(static_cast<double>(soon.short_in->count()), 1200, 1);
  EXPECT_EQ(soon.lasting, minutes(30));
  write(minutes(20), kMiB);
  EXPECT_LE(outlook(hours(1), 1800 * kMiB).short_in.value_or(hours(9)), seconds(1));
  write(minutes(1), kMiB);
  EXPECT_EQ(outlook(hours(1), 1800 * kMiB).short_in, seconds(0));
}

TEST_F(WindowForecastTest, WhatWasWrittenLongAgoLeavesTheWindow) {
  begin();
  write(hours(1), 2 * kMiB);
  // From now on half as much: the window gets lighter.
  write(minutes(10), kMiB);
  EXPECT_EQ(outlook(hours(1), 7300 * kMiB).short_in, std::nullopt);
  // Twice as much: in half an hour what leaves, an hour ago, has been replaced by twice as much.
  write(minutes(10), 4 * kMiB);
  const auto later = outlook(hours(1), 10'000 * kMiB);
  ASSERT_TRUE(later.short_in.has_value());
  const double held = 2 * 2400 + 1 * 600 + 4 * 600;  // MiB: the last hour
  const double until_short = (10'000 - held) / (4 - 2);
  EXPECT_NEAR(static_cast<double>(later.short_in->count()), until_short, 15);
}

TEST_F(WindowForecastTest, WhatTheLogHeldAtTheBeginningCameEvenly) {
  begin(hours(1), 3600 * kMiB);
  write(minutes(10), kMiB);
  EXPECT_EQ(outlook(hours(1), 3700 * kMiB).short_in, std::nullopt);
  const auto too_small = outlook(hours(2), 6000 * kMiB);
  ASSERT_TRUE(too_small.short_in.has_value());
  EXPECT_NEAR(static_cast<double>(too_small.short_in->count()), 1800, 15);
}

TEST_F(WindowForecastTest, IsBoundedAndStaysAboutAsGood) {
  begin();
  write(hours(100), kMiB);
  const auto soon = outlook(hours(200), 500'000 * kMiB);
  ASSERT_TRUE(soon.short_in.has_value());
  EXPECT_NEAR(static_cast<double>(soon.short_in->count()), 500'000 - 360'000, 100);
  EXPECT_EQ(outlook(hours(50), 181'000 * kMiB).short_in, std::nullopt);
}

TEST_F(WindowForecastTest, AClockThatIsSetBackIsWaitedFor) {
  begin();
  write(minutes(10), kMiB);
  const auto before = outlook(hours(1), 1800 * kMiB);
  forecast_.sample(at(now_ - minutes(5)), written_ + 5 * kMiB);
  EXPECT_EQ(outlook(hours(1), 1800 * kMiB).short_in, before.short_in);
}

// Of a log that is told each second, whatever the window.
TEST_F(WindowForecastTest, WhenABurstOfLongAgoLeavesTheWindowIsKnown) {
  begin();
  const auto write_each_second = [this](seconds during, std::uint64_t bytes_per_second) {
    for (const seconds end = now_ + during; now_ < end;) {
      ++now_;
      written_ += bytes_per_second;
      forecast_.sample(at(now_), written_);
    }
  };
  write_each_second(hours(1), 0);
  write_each_second(seconds(100), 10 * kMiB);
  write_each_second(hours(8), 0);
  const WindowForecast::Held held{.window = hours(9), .from = {}};
  const double room = 2000 * kMiB;
  // For an hour, from now on, half of the room is taken; then it is empty.
  EXPECT_NEAR(forecast_.spare(held, room, 0) / kMiB, 1000, 1);
  EXPECT_NEAR(forecast_.sustainable(held, room, seconds(60)) / kMiB, 2000 / 32400.0, 0.001);
  EXPECT_NEAR(forecast_.sustainable(held, 1010 * kMiB, seconds(60)) / kMiB, 10 / 3600.0, 0.001);
}

TEST_F(WindowForecastTest, WhatIsOlderThanTheFirstMomentIsNotHeld) {
  begin(hours(1), 3600 * kMiB);
  const WindowForecast::Held held{.window = hours(2), .from = at(seconds(0))};
  EXPECT_NEAR(forecast_.spare(held, 1000 * kMiB, 0) / kMiB, 1000, 1);
  EXPECT_LT(forecast_.spare({.window = hours(2), .from = {}}, 1000 * kMiB, 0), 0);
}

}  // namespace
}  // namespace mariner::node
