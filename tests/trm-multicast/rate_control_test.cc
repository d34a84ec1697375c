#include "trm-multicast/rate_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace mariner::trm {
namespace {

using Nanoseconds = std::chrono::nanoseconds;
using std::chrono::milliseconds;
constexpr std::array<ReceiverIndex, 3> kAll{0, 1, 2};

// Receivers behind queues that take so many bytes a second, and drop what does not fit. The sender
// always has something to send.
class Paths {
 public:
  explicit Paths(std::vector<double> takes) : takes_(std::move(takes)) {
    for (std::size_t i = 0; i < takes_.size(); ++i) {
      control.add(static_cast<ReceiverIndex>(i));
      states_.push_back({});
    }
  }

  void run(milliseconds time, RateControl::Load load = RateControl::Load::kFull,
           double offered = 1e18) {
    for (const Nanoseconds end = now + time; now < end; now += milliseconds(1)) {
      const double rate = std::min(control.bytes_per_second(now), offered);
      const double bytes = rate / 1000;
      sent += bytes;
      for (std::size_t i = 0; i < takes_.size(); ++i) step(i, bytes, load);
    }
  }

  RateControl control{RateControl::Options{}};
  std::vector<double> takes_;
  double loss = 0;  // at random, of all
  double sent = 0;
  Nanoseconds now = std::chrono::seconds(50);

  [[nodiscard]] double got(std::size_t i) const { return states_[i].got; }

 private:
  struct State {
    double queued = 0;
    double got = 0;
    int phase = 0;
  };
  static constexpr double kQueueBytes = 256 * 1024;  // or ten milliseconds

  void step(std::size_t i, double bytes, RateControl::Load load) {
    State& state = states_[i];
    const double queue = std::max(kQueueBytes, takes_[i] / 100);
    state.queued = std::min(state.queued + bytes * (1 - loss), queue);
    const double taken = std::min(state.queued, takes_[i] / 1000);
    state.queued -= taken;
    state.got += taken;
    if (++state.phase % 10 != 0) return;
    Report report{};
    report.bytes = static_cast<std::uint64_t>(state.got);
    report.highest = {static_cast<std::uint64_t>(sent - state.queued)};
    report.clock = now;
    control.reported(static_cast<ReceiverIndex>(i), report, load, now);
  }

  std::vector<State> states_;
};

TEST(RateControl, FindsWhatAllTakeWithinAThirdOfASecond) {
  for (const double takes : {1.25e6, 12.5e6, 125e6, 800e6}) {
    Paths paths({takes, takes, takes});
    paths.run(milliseconds(330));
    const double before = paths.got(1);
    paths.run(milliseconds(1000));
    EXPECT_GE(paths.got(1) - before, 0.95 * takes) << takes;
  }
}

TEST(RateControl, GoesWithTheSlowest) {
  Paths paths({125e6, 80e6, 125e6});
  paths.run(milliseconds(1000));
  const double before = paths.sent;
  paths.run(milliseconds(2000));
  const double rate = (paths.sent - before) / 2;
  EXPECT_GE(rate, 0.9 * 80e6);
  EXPECT_LE(rate, 1.1 * 80e6);
  for (const ReceiverIndex i : kAll) EXPECT_FALSE(paths.control.lags(i, paths.now));
}

TEST(RateControl, IsNotSlowedDownByRandomLoss) {
  for (const double loss : {0.001, 0.01, 0.05}) {
    Paths paths({12.5e6, 12.5e6, 12.5e6});
    paths.loss = loss;
    paths.run(milliseconds(500));
    const double before = paths.got(0);
    paths.run(milliseconds(3000));
    EXPECT_GE((paths.got(0) - before) / 3, (1 - loss) * 0.93 * 12.5e6) << loss;
  }
}

TEST(RateControl, WhoTakesATenthLagsAndDoesNotSlowDownTheOthersMuch) {
  Paths paths({12.5e6, 12.5e6, 12.5e6});
  paths.run(milliseconds(1000));
  paths.takes_[2] = 1.25e6;
  bool lagged = false;
  for (int i = 0; i < 200 && !lagged; ++i) {
    paths.run(milliseconds(10));
    lagged = paths.control.lags(2, paths.now);
  }
  EXPECT_TRUE(lagged);
  EXPECT_FALSE(paths.control.lags(0, paths.now));
  paths.control.remove(2);
  paths.run(milliseconds(500));
  const double before = paths.got(0);
  paths.run(milliseconds(1000));
  EXPECT_GE(paths.got(0) - before, 0.9 * 12.5e6);
}

TEST(RateControl, FollowsAPathThatBecomesSlowerOrFaster) {
  Paths paths({125e6, 125e6});
  paths.run(milliseconds(500));
  paths.takes_ = {30e6, 30e6};
  paths.run(milliseconds(1000));
  double before = paths.sent;
  paths.run(milliseconds(1000));
  EXPECT_LE(paths.sent - before, 1.15 * 30e6);
  EXPECT_GE(paths.sent - before, 0.9 * 30e6);
  paths.takes_ = {125e6, 125e6};
  paths.run(milliseconds(2500));
  before = paths.got(0);
  paths.run(milliseconds(1000));
  EXPECT_GE(paths.got(0) - before, 0.9 * 125e6);
}

TEST(RateControl, WhatWasOfferedTooLittleSaysNothingOfThePath) {
  Paths paths({125e6, 125e6});
  paths.run(milliseconds(3000), RateControl::Load::kIdle, 1e6);  // a lone writer
  EXPECT_TRUE(paths.control.starting());
  EXPECT_GE(paths.control.bytes_per_second(paths.now), 12e6);
  paths.run(milliseconds(330));
  const double before = paths.got(0);
  paths.run(milliseconds(1000));
  EXPECT_GE(paths.got(0) - before, 0.9 * 125e6);
}

TEST(RateControl, WhoComesLaterIsNotHeldAgainstWhatOthersGotBefore) {
  Paths paths({125e6, 125e6, 125e6});
  paths.control.remove(2);
  paths.run(milliseconds(500));
  paths.takes_ = {20e6, 20e6, 20e6};
  paths.run(milliseconds(50));
  paths.control.add(2);
  for (int i = 0; i < 60; ++i) {
    paths.run(milliseconds(50));
    EXPECT_FALSE(paths.control.lags(2, paths.now)) << i;
  }
}

TEST(RateControl, WhoLagsAndHoldsTheWindowStillLags) {
  Paths paths({12.5e6, 12.5e6, 12.5e6});
  paths.run(milliseconds(1000));
  paths.takes_[2] = 1.25e6;
  paths.run(milliseconds(100));
  paths.run(milliseconds(400), RateControl::Load::kWindow, 1e6);
  EXPECT_TRUE(paths.control.lags(2, paths.now));
  paths.run(milliseconds(50), RateControl::Load::kIdle, 0);
  EXPECT_FALSE(paths.control.lags(2, paths.now));
}

TEST(RateControl, WhoTookLittleForAMomentDoesNotLagWhileTheWindowIsTheBound) {
  Paths paths({12.5e6, 12.5e6, 12.5e6});
  paths.run(milliseconds(1000));
  paths.takes_[2] = 1.25e6;
  paths.run(milliseconds(100));
  paths.takes_[2] = 12.5e6;
  paths.run(milliseconds(400), RateControl::Load::kWindow, 10e6);
  EXPECT_FALSE(paths.control.lags(2, paths.now));
}

TEST(RateControl, ALoneWriterIsNotHeldAtWhereThePaceBegan) {
  Paths paths({125e6, 125e6});
  paths.run(milliseconds(1000), RateControl::Load::kIdle, 60e6);
  EXPECT_GE(paths.control.bytes_per_second(paths.now), 60e6);
}

TEST(RateControl, StaysWithinItsBounds) {
  RateControl::Options options;
  options.bytes_per_second_max = 1e6;
  RateControl control(options);
  control.add(0);
  EXPECT_LE(control.bytes_per_second(Nanoseconds{1}), 1e6);
  Report report{};
  for (int i = 1; i < 100; ++i) {
    report.clock = milliseconds(10 * i);
    report.bytes += 1'000'000;
    report.highest.value += 1'000'000;
    control.reported(0, report, RateControl::Load::kFull, report.clock);
    EXPECT_LE(control.bytes_per_second(report.clock), 1e6);
  }
  for (int i = 100; i < 1000; ++i) {  // nothing gets through
    report.clock = milliseconds(10 * i);
    report.highest.value += 1'000'000;
    control.reported(0, report, RateControl::Load::kFull, report.clock);
    EXPECT_GE(control.bytes_per_second(report.clock), options.bytes_per_second_min);
  }
}

}  // namespace
}  // namespace mariner::trm
