#include "server/node/log_limiter.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

TEST(LogLimiter, SoManyLinesInATimeAndThenHowManyMore) {
  LogLimiter limiter({.lines_max = 2, .time = 60s});
  EXPECT_TRUE(limiter.admit(5s).write);
  EXPECT_TRUE(limiter.admit(5s).write);
  for (int i = 0; i < 7; ++i) {
    const auto verdict = limiter.admit(64s);
    EXPECT_FALSE(verdict.write);
    EXPECT_EQ(verdict.untold, 0u);
  }
  const auto next = limiter.admit(65s);
  EXPECT_TRUE(next.write);
  EXPECT_EQ(next.untold, 7u);
  EXPECT_EQ(limiter.admit(200s).untold, 0u);
}

}  // namespace
}  // namespace mariner::node
