#include "server/volume/throttle.h"

#include <gtest/gtest.h>

namespace mariner::volume {
namespace {

using namespace std::chrono_literals;

TEST(Throttle, WithoutALimitNothingWaits) {
  Throttle throttle(0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(throttle.take(1u << 30, 1s), 0s);
}

TEST(Throttle, WhatIsMovedOverATimeIsTheLimit) {
  Throttle throttle(1'000'000);
  Throttle::Duration now = 10s;
  std::uint64_t moved = 0;
  while (now < 20s) {
    now += throttle.take(50'000, now);
    moved += 50'000;
  }
  EXPECT_GE(moved, 10'000'000u);
  EXPECT_LE(moved, 10'200'000u);
}

TEST(Throttle, SeveralWaitOneBehindTheOther) {
  Throttle throttle(1'000'000);
  EXPECT_EQ(throttle.take(1'000'000, 10s), 0s);
  EXPECT_EQ(throttle.take(1'000'000, 10s), 900ms) << "but for the burst";
  EXPECT_EQ(throttle.take(1'000'000, 10s), 1900ms);
  EXPECT_EQ(throttle.take(1'000'000, 12s), 900ms);
}

TEST(Throttle, AnotherLimitHoldsForWhatIsTakenFromThenOn) {
  Throttle throttle(1'000);
  EXPECT_EQ(throttle.take(1'000'000, 10s), 0s);
  throttle.set(1'000'000);
  EXPECT_EQ(throttle.take(1'000'000, 10s), 0s);
  EXPECT_EQ(throttle.take(1, 10s), 900ms);
  throttle.set(0);
  EXPECT_EQ(throttle.take(1u << 30, 10s), 0s);
  EXPECT_EQ(throttle.take(1u << 30, 10s), 0s);
}

TEST(Throttle, WhoWasIdleSavesNothingUp) {
  Throttle throttle(1'000'000);
  EXPECT_EQ(throttle.take(100'000, 100s), 0s);
  EXPECT_EQ(throttle.take(100'000, 100s), 0s);
  EXPECT_EQ(throttle.take(100'000, 100s), 100ms);
}

}  // namespace
}  // namespace mariner::volume
