#include "server/node/fair_share.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace mariner::node {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double level(double room, const std::vector<double>& demands) { return fair_level(room, demands); }

TEST(FairShare, WhereThereIsEnoughNobodyIsBounded) {
  EXPECT_EQ(level(10, {}), kInfinite);
  EXPECT_EQ(level(10, {3, 7}), kInfinite);
}

TEST(FairShare, WhoAsksForMoreThanAShareGetsWhatTheOthersLeave) {
  EXPECT_EQ(level(10, {kInfinite}), 10);
  EXPECT_EQ(level(10, {kInfinite, kInfinite}), 5);
  EXPECT_EQ(level(10, {kInfinite, 2}), 8);
  EXPECT_EQ(level(12, {1, kInfinite, 8, 3}), 4) << "of the twelve, 1 and 3 are met";
  EXPECT_EQ(level(0, {1, 0}), 0);
}

RC_GTEST_PROP(FairShare, AllOfTheRoomIsUsedAndNoMore, ()) {
  const auto room = *rc::gen::inRange(0, 1000);
  const auto asked = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 500));
  const std::vector<double> demands(asked.begin(), asked.end());
  const double bound = level(room, demands);
  const double got =
      std::accumulate(demands.begin(), demands.end(), 0.0,
                      [&](double sum, double demand) { return sum + std::min(demand, bound); });
  const double wanted = std::accumulate(demands.begin(), demands.end(), 0.0);
  RC_ASSERT(std::abs(got - std::min<double>(room, wanted)) < 1e-6);
}

}  // namespace
}  // namespace mariner::node
