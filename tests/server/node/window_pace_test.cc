#include "server/node/window_pace.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace mariner::node {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kMiB = 1u << 20;
constexpr double kBasic = 1 - WindowPace::kReserveShare;

// A log with room for 1 MiB a second over the window, and hosts that write as much as they may.
class SimulatedWindow {
 public:
  using Demand = std::function<double(std::size_t second)>;  // MiB

  explicit SimulatedWindow(seconds window) : window_(window) { forecast_.begin(at(), at(), 0); }

  // Bytes that the log holds from before.
  void hold(double mib, seconds during) {
    written_ += mib * kMiB;
    forecast_.begin({at().ns - static_cast<std::uint64_t>(during.count()) * 1'000'000'000}, at(),
                    static_cast<std::uint64_t>(mib * kMiB));
    began_with_ = mib * kMiB;
  }
  void run(seconds during, const Demand& demand) {
    for (seconds left = during; left.count() > 0; --left) {
      const double may =
          pace_.allowed(forecast_, {window_, {}}, room(), {1, written_ - written_before_});
      written_before_ = written_;
      const double rate = std::min(may, demand(rates.size()) * kMiB);
      written_ += rate;
      rates.push_back(rate / kMiB);
      allowed.push_back(may / kMiB);
      forecast_.sample(at(), static_cast<std::uint64_t>(written_ - began_with_));
      held_most = std::max(held_most, held() / room());
    }
  }
  // In the next second, whatever is allowed.
  void surge(double mib) { written_ += mib * kMiB; }
  [[nodiscard]] double room() const { return static_cast<double>(window_.count()) * kMiB; }
  // By what was written, second by second.
  [[nodiscard]] double held() const {
    const auto from = rates.size() - std::min<std::size_t>(rates.size(), window_.count());
    double sum = 0;
    for (std::size_t i = from; i < rates.size(); ++i) sum += rates[i];
    return sum * kMiB;
  }
  [[nodiscard]] double mean(seconds from, seconds to) const {
    double sum = 0;
    for (auto i = from.count(); i < to.count(); ++i) sum += rates[static_cast<std::size_t>(i)];
    return sum / static_cast<double>((to - from).count());
  }
  // The greatest change from one second to the next, as a share of the rate.
  [[nodiscard]] double roughest(seconds from) const {
    double most = 0;
    for (auto i = static_cast<std::size_t>(from.count()) + 1; i < rates.size(); ++i) {
      most = std::max(most, std::abs(rates[i] - rates[i - 1]) / rates[i - 1]);
    }
    return most;
  }

  std::vector<double> rates;    // MiB a second
  std::vector<double> allowed;  // likewise
  double held_most = 0;         // of the room, at any time

 private:
  [[nodiscard]] VersionTime at() const {
    return {static_cast<std::uint64_t>(
        std::chrono::nanoseconds(hours(24 * 365) + seconds(rates.size())).count())};
  }

  const seconds window_;
  WindowForecast forecast_;
  WindowPace pace_;
  double began_with_ = 0;
  double written_ = 0;
  double written_before_ = 0;
};

SimulatedWindow::Demand constant(double mib) {
  return [mib](std::size_t) { return mib; };
}

// What errors are made up for in time, and what a second may bring.
constexpr double kRoomMost = 1 + 1.0 / WindowPace::kLeewayShare;

TEST(WindowPace, WhoStaysBelowWhatTheLogCanHoldIsNeverSlowed) {
  SimulatedWindow log(minutes(30));
  log.run(minutes(120), constant(0.97));
  EXPECT_NEAR(log.mean(seconds(0), minutes(120)), 0.97, 1e-6);
  EXPECT_LE(log.held_most, 1);
}

TEST(WindowPace, AnOverloadIsSlowedSmoothlyToWhatTheLogCanHold) {
  SimulatedWindow log(hours(1));
  log.run(hours(6), constant(4));
  EXPECT_EQ(log.rates[0], 4) << "an empty log slows nobody at first";
  EXPECT_LE(log.held_most, kRoomMost);
  EXPECT_LT(log.roughest(seconds(0)), 0.05) << "from one second to the next";
  EXPECT_GE(*std::ranges::min_element(log.rates), kBasic * 0.999) << "it never stands";
  EXPECT_NEAR(log.mean(minutes(50), minutes(60)), kBasic, 0.06);
  EXPECT_NEAR(log.mean(hours(2), hours(6)), 1, 0.02) << "all of the log is used then";
}

TEST(WindowPace, ItDoesNotOscillate) {
  SimulatedWindow log(hours(1));
  log.run(hours(8), constant(10));
  // From when the burst has left the window, the rate rises once, and stays.
  const auto settled = log.rates.begin() + seconds(hours(2)).count();
  const auto [least, most] = std::minmax_element(settled, log.rates.end());
  EXPECT_GT(*least, 0.97);
  EXPECT_LT(*most, 1.01);
}

TEST(WindowPace, WhatWasNotUsedOfTheReserveMayComeAtOnce) {
  SimulatedWindow log(hours(1));
  log.run(hours(2), constant(0.5));
  log.run(minutes(1), constant(8));
  EXPECT_GT(log.mean(hours(2), hours(2) + minutes(1)), 7) << "480 of 900 MiB";
  log.run(hours(3), constant(8));
  EXPECT_LE(log.held_most, kRoomMost);
}

TEST(WindowPace, ALogThatIsFullOfWhatCameBeforeGetsThereWithoutStanding) {
  SimulatedWindow log(hours(1));
  log.hold(3600 * 1.2, hours(1));  // a fifth more than there is room for
  log.run(hours(4), constant(4));
  EXPECT_GE(*std::ranges::min_element(log.rates), kBasic * WindowPace::kLeastShare * 0.999);
  EXPECT_NEAR(log.mean(hours(2), hours(4)), 1, 0.05);
  EXPECT_LT(log.roughest(minutes(10)), 0.1);
}

// Faster than it can be looked at.
TEST(WindowPace, ABurstThatWasTooLargeDoesNotComeAgainWhenItLeavesTheWindow) {
  SimulatedWindow log(minutes(2));
  log.surge(1.2 * 120);
  log.run(minutes(20), constant(50));
  EXPECT_LT(*std::max_element(log.rates.begin() + 10, log.rates.end()), 1.1);
  EXPECT_NEAR(log.mean(minutes(10), minutes(20)), 1, 0.05);
}

TEST(WindowPace, WhatIsOlderThanTheFirstMomentNeedsNoRoom) {
  WindowForecast forecast;
  const VersionTime now{static_cast<std::uint64_t>(seconds(hours(24)).count()) * 1'000'000'000};
  forecast.begin({now.ns - 3'600'000'000'000}, now, 3600 << 20);
  WindowPace old;
  WindowPace young;
  const double room = 7200 * kMiB;
  EXPECT_LT(old.allowed(forecast, {hours(24), {}}, room, {1, 0}), 0.05 * kMiB);
  EXPECT_GT(young.allowed(forecast, {hours(24), now}, room, {1, 0}), 100 * kMiB);
}

// Whatever comes: bursts, pauses, rates far above and below.
RC_GTEST_PROP(WindowPace, TheWindowIsHeldAndTheRateNeverFallsBelowTheBasicOne, ()) {
  const seconds window(*rc::gen::inRange(600, 1800));
  SimulatedWindow log(window);
  const auto phases = *rc::gen::inRange(1, 8);
  for (int phase = 0; phase < phases; ++phase) {
    const auto during = *rc::gen::inRange<int>(10, static_cast<int>(window.count()) * 2);
    const double mib = *rc::gen::elementOf(std::vector<double>{0, 0.1, 0.7, 0.9, 1.1, 2, 8});
    log.run(seconds(during), constant(mib));
  }
  RC_ASSERT(log.held_most <= kRoomMost);
  // (A second at the greatest of these rates passes before the pace is felt.)
  RC_ASSERT(*std::ranges::min_element(log.allowed) >= kBasic * 0.95);
}

}  // namespace
}  // namespace mariner::node
