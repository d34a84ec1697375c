#include "ifsck/map_comparison.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace mariner::ifsck {
namespace {

BlockMap map(std::vector<BlockMap::Run> runs) {
  BlockMap map;
  map.runs = std::move(runs);
  return map;
}

TEST(MapComparison, SaysWhetherBlocksAreWhereTheyWere) {
  const BlockMap now = map({{0, 100, 10}, {20, 300, 5}});
  EXPECT_TRUE(MapComparison(now, now).agree());
  EXPECT_FALSE(MapComparison(now, map({{0, 100, 4}, {4, 104, 40}})).agree());
  EXPECT_TRUE(MapComparison(now, map({{0, 100, 4}, {4, 104, 16}, {20, 300, 9}})).agree());
  EXPECT_TRUE(MapComparison(now, map({{10, 700, 10}})).agree());
  EXPECT_FALSE(MapComparison(now, map({{9, 700, 3}})).agree());
  EXPECT_FALSE(MapComparison(now, map({{0, 100, 10}, {24, 305, 1}})).agree());
}

TEST(MapComparison, WhatIsLeftOutDoesNotCount) {
  const BlockMap now = map({{0, 100, 10}, {20, 300, 5}});
  const BlockMap later = map({{0, 100, 6}, {6, 900, 4}, {22, 800, 1}});
  EXPECT_FALSE(MapComparison(now, later).agree());
  EXPECT_FALSE(MapComparison(now, later, {{22, 30}}).agree());
  EXPECT_FALSE(MapComparison(now, later, {{22, 30}, {7, 10}}).agree());
  EXPECT_TRUE(MapComparison(now, later, {{22, 30}, {7, 10}, {5, 8}}).agree());
  // All that both have is left out.
  EXPECT_FALSE(MapComparison(now, map({{0, 100, 10}}), {{0, 10}}).shrinks());
  EXPECT_TRUE(MapComparison(now, map({{0, 100, 10}})).shrinks());
}

TEST(MapComparison, SaysWhatShrinks) {
  const BlockMap now = map({{0, 100, 10}, {20, 300, 5}});
  EXPECT_FALSE(MapComparison(now, now).shrinks());
  EXPECT_TRUE(MapComparison(now, map({{0, 100, 3}})).shrinks());
  EXPECT_TRUE(MapComparison(now, map({})).shrinks());
  EXPECT_FALSE(MapComparison(now, map({{0, 100, 3}, {12, 400, 1}})).shrinks());
}

}  // namespace
}  // namespace mariner::ifsck
