#include "tests/bench/paced_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::bench {
namespace {

using std::chrono::nanoseconds;

std::vector<std::int64_t> all(PacedTimes times) {
  std::vector<std::int64_t> due;
  for (; !times.done(); times.advance()) due.push_back(times.next().count());
  return due;
}

TEST(PacedTimes, OneEveryInterval) {
  EXPECT_EQ(all(PacedTimes({.count = 4, .interval = nanoseconds(10)})),
            (std::vector<std::int64_t>{0, 10, 20, 30}));
}

TEST(PacedTimes, AllAtOnce) {
  EXPECT_EQ(all(PacedTimes({.count = 3})), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(PacedTimes, APauseBehindEachBurst) {
  EXPECT_EQ(all(PacedTimes(
                {.count = 5, .interval = nanoseconds(1), .burst = 2, .pause = nanoseconds(100)})),
            (std::vector<std::int64_t>{0, 1, 101, 102, 202}));
}

}  // namespace
}  // namespace mariner::bench
