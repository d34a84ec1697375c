#include "logging/base_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::noise;

TEST(BaseCache, HoldsTheLastOfEachPlace) {
  BaseCache cache(10);
  EXPECT_TRUE(cache.find(0).empty());
  for (std::uint32_t block = 0; block < 10; ++block) cache.insert(block, noise(block, kBlockBytes));
  cache.insert(13, noise(13, kBlockBytes));
  for (const std::uint32_t block : {0u, 1u, 2u, 4u, 9u, 13u}) {
    EXPECT_TRUE(std::ranges::equal(cache.find(block), noise(block, kBlockBytes))) << block;
  }
  EXPECT_TRUE(cache.find(3).empty());
  EXPECT_TRUE(cache.find(10).empty());
}

TEST(BaseCache, AnEmptyPlaceIsNotBlockZero) {
  BaseCache cache(10);
  cache.insert(5, noise(5, kBlockBytes));
  EXPECT_TRUE(cache.find(0).empty());
}

}  // namespace
}  // namespace mariner::logging
