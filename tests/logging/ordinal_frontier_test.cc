#include "logging/ordinal_frontier.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace mariner::logging {
namespace {

TEST(OrdinalFrontier, GivesOrdinalsInOrder) {
  OrdinalFrontier ordinals(7);
  EXPECT_EQ(ordinals.value(), 7u) << "nothing below is known to be missing";
  EXPECT_EQ(ordinals.give(), 7u);
  EXPECT_EQ(ordinals.give(), 8u);
  EXPECT_EQ(ordinals.value(), 7u);
}

TEST(OrdinalFrontier, StaysBelowTheLowestThatIsNotSettled) {
  OrdinalFrontier ordinals(1);
  for (int i = 0; i < 4; ++i) ordinals.give();
  ordinals.settle(2);
  ordinals.settle(4);
  EXPECT_EQ(ordinals.value(), 1u);
  ordinals.settle(1);
  EXPECT_EQ(ordinals.value(), 3u);
  ordinals.settle(3);
  EXPECT_EQ(ordinals.value(), 5u) << "all that were given";
  EXPECT_EQ(ordinals.give(), 5u);
  EXPECT_EQ(ordinals.value(), 5u);
}

TEST(OrdinalFrontier, IsTheLowestOpenOneInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    OrdinalFrontier ordinals(1 + random() % 1000);
    std::uint64_t next = ordinals.value();
    std::set<std::uint64_t> open;
    for (int step = 0; step < 200; ++step) {
      if (open.empty() || random() % 2 == 0) {
        ASSERT_EQ(ordinals.give(), next) << "seed " << seed;
        open.insert(next++);
      } else {
        const auto any =
            std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
        ordinals.settle(*any);
        open.erase(any);
      }
      ASSERT_EQ(ordinals.value(), open.empty() ? next : *open.begin()) << "seed " << seed;
    }
  }
}

TEST(OrdinalFrontierDeathTest, RefusesWhatWasNotGivenOrIsSettledAlready) {
  OrdinalFrontier ordinals(5);
  ordinals.give();
  ordinals.give();
  EXPECT_DEATH(ordinals.settle(4), "");
  EXPECT_DEATH(ordinals.settle(7), "");
  ordinals.settle(6);
  EXPECT_DEATH(ordinals.settle(6), "");
}

}  // namespace
}  // namespace mariner::logging
