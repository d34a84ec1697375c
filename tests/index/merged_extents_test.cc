#include "index/merged_extents.h"

#include <gtest/gtest.h>

#include <random>

namespace mariner::index {
namespace {

BlockRange block(std::uint64_t lbn, std::uint64_t count = 1) {
  return {Lbn{lbn}, BlockCount{count}};
}

TEST(MergedExtents, AreSortedAndMerged) {
  MergedExtents extents;
  EXPECT_TRUE(extents.take().empty());
  for (const std::uint64_t lbn : {9, 3, 4, 3}) extents.add(block(lbn));
  extents.add(block(8, 4));
  EXPECT_EQ(extents.take(), (std::vector{block(3, 2), block(8, 4)}));
  EXPECT_TRUE(extents.take().empty());
}

TEST(MergedExtents, WhatIsWrittenAgainAndAgainTakesNoMore) {
  MergedExtents extents;
  std::mt19937_64 random(1);
  std::size_t most = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    extents.add(block(random() % 100 * 2));
    most = std::max(most, extents.held());
  }
  EXPECT_LE(most, MergedExtents::kUnmergedMax + 100);
  EXPECT_EQ(extents.take().size(), 100u);
}

}  // namespace
}  // namespace mariner::index
