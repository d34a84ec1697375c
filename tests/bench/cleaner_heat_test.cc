#include "tests/bench/cleaner_heat.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::bench {
namespace {

TEST(CleanerHeat, OfTheLastWrite) {
  LastWriteHeat heat(4);
  EXPECT_FALSE(heat.is_hot(0, 2)) << "never written";
  EXPECT_FALSE(heat.is_hot(1, 2));
  EXPECT_TRUE(heat.is_hot(0, 2));
  heat.is_hot(2, 2);
  EXPECT_FALSE(heat.is_hot(1, 2)) << "three writes ago";
}

TEST(CleanerHeat, OfBloomFiltersForgetsAfterASpan) {
  BloomHeat heat(1 << 12);
  heat.is_hot(0, 20);
  for (std::uint32_t block = 1; block < 9; ++block) heat.is_hot(block, 20);
  EXPECT_TRUE(heat.is_hot(0, 20)) << "half a span is always remembered";
  for (std::uint32_t block = 100; block < 121; ++block) {
    EXPECT_FALSE(heat.is_hot(block, 20)) << "never written";
  }
  EXPECT_FALSE(heat.is_hot(0, 20));
}

TEST(CleanerHeat, OfRatesTakesWhatIsWrittenOncePerSpan) {
  RateHeat heat(200, 100);
  unsigned often = 0, seldom = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const bool is_often = i % 10 == 0;
    const bool hot =
        heat.is_hot(is_often ? 0 : 1 + i % 150, 40);  // every 10, and every 150 or more
    if (i >= 300) (is_often ? often : seldom) += hot ? 1 : 0;
  }
  EXPECT_EQ(often, 270u);
  EXPECT_EQ(seldom, 0u);
}

TEST(CleanerHeat, OfSweptCountsIsAboutTheSame) {
  SweptHeat heat(200, 100);
  unsigned often = 0, seldom = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const bool is_often = i % 10 == 0;
    const bool hot = heat.is_hot(is_often ? 0 : 1 + i % 150, 40);
    if (i >= 300) (is_often ? often : seldom) += hot ? 1 : 0;
  }
  EXPECT_GT(often, 260u);
  EXPECT_EQ(seldom, 0u);
}

TEST(CleanerHeat, OfTheFutureKnowsIt) {
  const std::vector<std::uint32_t> writes = {0, 1, 0, 2, 2, 1};
  FutureHeat heat(writes, 3);
  const std::vector<bool> expected = {true, false, false, true, false, false};
  for (std::size_t i = 0; i < writes.size(); ++i)
    EXPECT_EQ(heat.is_hot(writes[i], 3), expected[i]) << i;
}

}  // namespace
}  // namespace mariner::bench
