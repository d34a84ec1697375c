#include "tests/bench/index_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace mariner::bench {
namespace {

using Pattern = BlockWorkload::Pattern;

constexpr std::uint64_t kDraws = 300'000;

std::vector<std::uint64_t> draw(Pattern pattern, std::uint64_t blocks, std::uint64_t seed) {
  BlockWorkload workload({.pattern = pattern, .blocks = blocks, .seed = seed});
  std::vector<std::uint64_t> drawn(kDraws);
  std::ranges::generate(drawn, [&] { return workload.next(); });
  return drawn;
}

// How often each part of so many equal ones was drawn, the most frequent first.
std::vector<double> shares(const std::vector<std::uint64_t>& drawn, std::uint64_t part_blocks) {
  std::map<std::uint64_t, double> counts;
  for (const std::uint64_t block : drawn) counts[block / part_blocks] += 1.0 / kDraws;
  std::vector<double> result;
  for (const auto& [part, share] : counts) result.push_back(share);
  std::ranges::sort(result, std::greater());
  return result;
}

TEST(BlockWorkloadTest, IsMadeFromItsSeed) {
  for (const Pattern pattern : {Pattern::kUniform, Pattern::kKeyRangeHot, Pattern::kClustered}) {
    EXPECT_EQ(draw(pattern, 1'000'000, 3), draw(pattern, 1'000'000, 3));
    EXPECT_NE(draw(pattern, 1'000'000, 3), draw(pattern, 1'000'000, 4));
  }
}

TEST(BlockWorkloadTest, StaysAmongItsBlocksAndReachesTheirEnds) {
  for (const Pattern pattern :
       {Pattern::kUniform, Pattern::kKeyRangeHot, Pattern::kClustered, Pattern::kSequential}) {
    const std::vector<std::uint64_t> drawn = draw(pattern, 990, 1);
    EXPECT_EQ(std::ranges::min(drawn), 0u);
    EXPECT_EQ(std::ranges::max(drawn), 989u);
  }
}

TEST(BlockWorkloadTest, UniformDrawsEachBlockAlike) {
  const std::vector<double> parts = shares(draw(Pattern::kUniform, 1'000'000, 1), 10'000);
  ASSERT_EQ(parts.size(), 100u);
  EXPECT_NEAR(parts.front(), 0.01, 0.001);
  EXPECT_NEAR(parts.back(), 0.01, 0.001);
}

TEST(BlockWorkloadTest, SequentialGoesAroundFromBlock0) {
  const std::vector<std::uint64_t> drawn = draw(Pattern::kSequential, 1'000, 1);
  for (std::uint64_t i = 0; i < kDraws; ++i) ASSERT_EQ(drawn[i], i % 1'000);
}

TEST(BlockWorkloadTest, ClusteredHas32InARowFromARandomStart) {
  const std::vector<std::uint64_t> drawn = draw(Pattern::kClustered, 100'000'000, 1);
  std::vector<std::uint64_t> starts;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    if (i % 32 == 0) starts.push_back(drawn[i]);
    ASSERT_EQ(drawn[i], starts.back() + i % 32);
  }
  const std::uint64_t in_lower_half = static_cast<std::uint64_t>(
      std::ranges::count_if(starts, [](std::uint64_t start) { return start < 50'000'000; }));
  EXPECT_NEAR(static_cast<double>(in_lower_half), 0.5 * static_cast<double>(starts.size()), 200);
}

// 1 / f(30) = 688.6: in whole multiples of it the ranges have 539, 38, 10, 8, ... 1 of 668.
TEST(BlockWorkloadTest, RangesAreAsHotAsTheTwoTermModelSays) {
  constexpr std::uint64_t kBlocks = 30'000'000;
  const std::vector<double> ranges = shares(draw(Pattern::kKeyRangeHot, kBlocks, 1), kBlocks / 30);
  ASSERT_EQ(ranges.size(), 30u);
  std::vector<double> expected;
  double sum = 0;
  for (int x = 1; x <= 30; ++x) {
    const double f = 14.18 * std::exp(-2.917 * x) + 0.0164 * std::exp(-0.08082 * x);
    expected.push_back(std::floor(689 * f));
    sum += expected.back();
  }
  EXPECT_NEAR(ranges[0], 0.806, 0.003);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_NEAR(ranges[i], expected[i] / sum, 0.003) << i;
}

// 0.2312 % of the hottest range on one block; 100 ranks have 1.14 %, 10,000 ranks 5.6 %.
TEST(BlockWorkloadTest, BlocksOfARangeAreAsHotAsThePowerModelSays) {
  constexpr std::uint64_t kBlocks = 3'000'000'000;  // more than ranks: hardly two share a block
  const std::vector<double> blocks = shares(draw(Pattern::kKeyRangeHot, kBlocks, 1), 1);
  EXPECT_NEAR(blocks[0], 0.806 * 0.002312, 0.0003);
  double hottest = 0;
  for (std::size_t i = 0; i < 100; ++i) hottest += blocks[i];
  EXPECT_NEAR(hottest, 0.806 * 0.002312 * std::pow(100, 0.3467), 0.002);
}

TEST(BlockWorkloadTest, WhichBlocksAreHotDoesNotDependOnTheSeed) {
  const auto hottest = [](std::uint64_t seed) {
    std::map<std::uint64_t, int> counts;
    for (const std::uint64_t block : draw(Pattern::kKeyRangeHot, 3'000'000'000, seed)) {
      ++counts[block];
    }
    return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })
        ->first;
  };
  EXPECT_EQ(hottest(1), hottest(2));
}

}  // namespace
}  // namespace mariner::bench
