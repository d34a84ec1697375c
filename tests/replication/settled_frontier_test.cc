#include "replication/settled_frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace mariner::replication {
namespace {

TEST(SettledFrontier, MovesOverWhatSettlesInOrder) {
  SettledFrontier frontier(SequenceNumber{10});
  EXPECT_EQ(frontier.value(), SequenceNumber{10});
  EXPECT_TRUE(frontier.settle(SequenceNumber{11}));
  EXPECT_EQ(frontier.value(), SequenceNumber{11});
}

TEST(SettledFrontier, WaitsForTheLowestMissing) {
  SettledFrontier frontier(SequenceNumber{0});
  EXPECT_FALSE(frontier.settle(SequenceNumber{3}));
  EXPECT_FALSE(frontier.settle(SequenceNumber{2}));
  EXPECT_EQ(frontier.value(), SequenceNumber{0});
  EXPECT_TRUE(frontier.settle(SequenceNumber{1}));
  EXPECT_EQ(frontier.value(), SequenceNumber{3});
}

TEST(SettledFrontier, EveryOrderEndsAtTheHighest) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> numbers(1 + seed % 50);
    std::iota(numbers.begin(), numbers.end(), 101);
    std::shuffle(numbers.begin(), numbers.end(), random);
    SettledFrontier frontier(SequenceNumber{100});
    std::vector<bool> settled(numbers.size() + 2, false);
    for (const std::uint64_t number : numbers) {
      settled[number - 100] = true;
      frontier.settle(SequenceNumber{number});
      std::uint64_t expected = 100;
      while (settled[expected - 100 + 1]) ++expected;
      ASSERT_EQ(frontier.value().value, expected) << "seed " << seed;
    }
  }
}

TEST(SettledFrontier, MillionsSettleAtOnce) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 50;
  SettledFrontier frontier(SequenceNumber{10});
  EXPECT_FALSE(frontier.settle({{12}, {kMany}}));
  EXPECT_FALSE(frontier.settle({{kMany + 2}, {2 * kMany}}));
  EXPECT_TRUE(frontier.settle(SequenceNumber{11}));
  EXPECT_EQ(frontier.value(), SequenceNumber{kMany});
  EXPECT_TRUE(frontier.settle(SequenceNumber{kMany + 1}));
  EXPECT_EQ(frontier.value(), SequenceNumber{2 * kMany});
}

TEST(SettledFrontierDeath, TwiceOrBelowIsABug) {
  SettledFrontier frontier(SequenceNumber{5});
  EXPECT_FALSE(frontier.settle(SequenceNumber{7}));
  EXPECT_DEATH(frontier.settle(SequenceNumber{7}), "CHECK failed");
  EXPECT_DEATH(frontier.settle(SequenceNumber{5}), "CHECK failed");
  EXPECT_DEATH(frontier.settle({{6}, {7}}), "CHECK failed");
}

}  // namespace
}  // namespace mariner::replication
