#include "tests/bench/block_pattern.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace mariner::bench {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

std::vector<std::uint64_t> taken(const BlockPattern::Options& options, std::size_t count) {
  BlockPattern pattern(options);
  EXPECT_TRUE(pattern.valid());
  std::vector<std::uint64_t> out(count);
  for (std::uint64_t& block : out) block = pattern.next();
  return out;
}

TEST(BlockPattern, SequentialSessionsEachGoRoundTheirPart) {
  EXPECT_THAT(taken({.first = 100, .count = 7, .session = 0, .sessions = 2}, 5),
              ElementsAre(100, 101, 102, 100, 101));
  EXPECT_THAT(taken({.first = 100, .count = 7, .session = 1, .sessions = 2}, 5),
              ElementsAre(103, 104, 105, 103, 104));
}

TEST(BlockPattern, ARandomLoadReachesAllOfTheRegionAndNothingElse) {
  const auto blocks = taken({.first = 50, .count = 20, .random = true, .sessions = 4}, 1000);
  EXPECT_THAT(blocks, Each(Ge(50u)));
  EXPECT_THAT(blocks, Each(Lt(70u)));
  EXPECT_EQ(std::set(blocks.begin(), blocks.end()).size(), 20u);
}

TEST(BlockPattern, SeedAndSessionDecideTheOrder) {
  const BlockPattern::Options options{.count = 1000, .random = true, .sessions = 2, .seed = 3};
  const auto blocks = taken(options, 50);
  EXPECT_EQ(taken(options, 50), blocks);
  BlockPattern::Options other = options;
  other.seed = 4;
  EXPECT_NE(taken(other, 50), blocks);
  other = options;
  other.session = 1;
  EXPECT_NE(taken(other, 50), blocks);
}

// The blocks that come more often than with an even load.
std::set<std::uint64_t> hot_ones(std::uint64_t seed, double* share) {
  constexpr std::size_t kTaken = 100'000;
  std::map<std::uint64_t, std::size_t> times;
  for (const std::uint64_t block :
       taken({.count = 1000, .random = true, .seed = seed, .hot_load = 80, .hot_blocks = 20},
             kTaken)) {
    ++times[block];
  }
  std::set<std::uint64_t> hot;
  std::size_t of_hot = 0;
  for (const auto& [block, count] : times) {
    if (count <= kTaken / 1000) continue;
    hot.insert(block);
    of_hot += count;
  }
  *share = static_cast<double>(of_hot) / kTaken;
  return hot;
}

TEST(BlockPattern, SoManyPercentOfTheLoadGoToSoManyPercentOfTheBlocks) {
  double share = 0;
  const std::set<std::uint64_t> hot = hot_ones(1, &share);
  EXPECT_EQ(hot.size(), 200u);
  EXPECT_NEAR(share, 0.8, 0.01);
  EXPECT_GT(*hot.rbegin() - *hot.begin(), 900u) << "scattered";
  EXPECT_EQ(hot_ones(2, &share), hot) << "the same ones in every run";
}

TEST(BlockPattern, WithoutColdOrHotBlocksTheLoadIsEven) {
  const BlockPattern::Options even{.count = 100, .random = true};
  for (const unsigned percent : {0u, 100u}) {
    BlockPattern::Options options = even;
    options.hot_load = 80;
    options.hot_blocks = percent;
    EXPECT_EQ(taken(options, 100), taken(even, 100)) << percent;
  }
}

TEST(BlockPattern, DistinctBlocksComeOnceEachAndAreTheSameWithEverySeed) {
  const auto one = taken({.first = 9, .count = 100, .random = true, .seed = 1, .distinct = 30}, 30);
  const auto two = taken({.first = 9, .count = 100, .random = true, .seed = 2, .distinct = 30}, 30);
  EXPECT_NE(one, two);
  const std::set chosen(one.begin(), one.end());
  EXPECT_EQ(chosen.size(), 30u);
  EXPECT_EQ(std::set(two.begin(), two.end()), chosen);
  EXPECT_EQ(taken({.count = 5, .random = true, .distinct = 30}, 10).size(), 10u)
      << "no more than there are";
}

TEST(BlockPattern, GivenBlocksComeInTheirOrderAgainAndAgain) {
  EXPECT_THAT(taken({.first = 10, .count = 5, .random = true, .blocks = {4, 0, 4}}, 4),
              ElementsAre(14, 10, 14, 14));
}

TEST(BlockPattern, WhatDoesNotFitTheRegionIsInvalid) {
  EXPECT_FALSE(BlockPattern({.count = 0}).valid());
  EXPECT_FALSE(BlockPattern({.count = 3, .sessions = 4}).valid());
  EXPECT_FALSE(BlockPattern({.count = 3, .blocks = {0, 3}}).valid());
}

}  // namespace
}  // namespace mariner::bench
