#include "logging/pack_fan_out.h"

#include <gtest/gtest.h>

namespace mariner::logging {
namespace {

TEST(PackFanOut, AllowsSoManyForeignRegions) {
  PackFanOut fan_out(2);
  fan_out.enter(0, 0, 10);
  for (const std::uint32_t region : {3u, 5u}) {
    EXPECT_TRUE(fan_out.allows(region));
    fan_out.refer(region);
  }
  EXPECT_FALSE(fan_out.allows(7));
  EXPECT_TRUE(fan_out.allows(3));
  EXPECT_TRUE(fan_out.allows(5));
  EXPECT_TRUE(fan_out.allows(10));  // its own
  EXPECT_TRUE(fan_out.allows(12));
}

TEST(PackFanOut, WhatIsReferredToWithoutAskingCountsToo) {
  PackFanOut fan_out(2);
  fan_out.enter(0, 0, 10);
  for (std::uint32_t region = 0; region < 5; ++region) fan_out.refer(region);
  EXPECT_FALSE(fan_out.allows(6));
  EXPECT_TRUE(fan_out.allows(4));
}

TEST(PackFanOut, EachStretchBeginsAnew) {
  PackFanOut fan_out(1);
  fan_out.enter(0, 4096, 10);
  fan_out.refer(3);
  fan_out.enter(0, 131071, 11);
  EXPECT_FALSE(fan_out.allows(4));
  EXPECT_TRUE(fan_out.allows(10));
  fan_out.enter(0, 131072, 11);
  EXPECT_TRUE(fan_out.allows(4));
  fan_out.refer(4);
  EXPECT_FALSE(fan_out.allows(10));
  fan_out.enter(1, 131072, 11);
  EXPECT_TRUE(fan_out.allows(10));
}

}  // namespace
}  // namespace mariner::logging
