#include "server/node/clock_health.h"

#include <gtest/gtest.h>
#include <sys/timex.h>

#include <cerrno>

namespace mariner::node {
namespace {

TEST(ClockHealthTest, IsAsTheKernelSays) {
  const ClockHealth good = clock_health(TIME_OK, 0, 0);
  EXPECT_TRUE(good.well);
  EXPECT_EQ(good.text, "synchronised, 0 steps seen since start");
  EXPECT_EQ(good.advice, "");
  EXPECT_TRUE(clock_health(TIME_INS, 0, 0).well) << "a leap second is coming";
  EXPECT_FALSE(clock_health(TIME_OK, 0, 2).well);
  const ClockHealth bad = clock_health(TIME_ERROR, 0, 0);
  EXPECT_FALSE(bad.well);
  EXPECT_EQ(bad.text, "not synchronised, 0 steps seen since start");
  EXPECT_NE(bad.advice.find("chrony"), std::string::npos);
}

TEST(ClockHealthTest, WhoMayNotAskDoesNotKnow) {
  const ClockHealth unknown = clock_health(-1, EPERM, 0);
  EXPECT_FALSE(unknown.well);
  EXPECT_EQ(unknown.text, "not known: adjtimex: Operation not permitted, 0 steps seen since start");
  EXPECT_NE(unknown.advice.find("clock_adjtime"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node
