#include "ifsck/block_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/block_ranges.h"

namespace mariner::ifsck {
namespace {

using Entries = std::vector<BlockTable::Entry>;

Entries listed(std::span<const BlockTable::Entry> entries) {
  return {entries.begin(), entries.end()};
}

TEST(BlockTableTest, WhatWasAddedInAnyOrderIsFound) {
  BlockTable table;
  for (const FsBlock block : {30, 10, 20}) table.add(block, static_cast<std::uint32_t>(block + 1));
  table.sort();
  EXPECT_EQ(table, (BlockTable{{10, 11}, {20, 21}, {30, 31}}));
  ASSERT_NE(table.find(20), nullptr);
  EXPECT_EQ(*table.find(20), 21u);
  for (const FsBlock block : {9, 15, 31}) EXPECT_EQ(table.find(block), nullptr) << block;
  EXPECT_EQ(BlockTable().find(1), nullptr);
}

TEST(BlockTableTest, ARangeHasItsBeginningAndNotItsEnd) {
  const BlockTable table{{10, 1}, {20, 2}, {30, 3}};
  EXPECT_EQ(listed(table.within(10, 30)), (Entries{{10, 1}, {20, 2}}));
  EXPECT_EQ(listed(table.within(11, 20)), Entries{});
  EXPECT_EQ(listed(table.within(30, 31)), (Entries{{30, 3}}));
  EXPECT_EQ(listed(table.within(0, ~FsBlock{0})), (Entries{{10, 1}, {20, 2}, {30, 3}}));
}

TEST(BlockTableTest, BlocksAreTakenAway) {
  BlockTable table{{10, 1}, {20, 2}, {30, 3}};
  table.erase_if([](FsBlock block) { return block == 20; });
  EXPECT_EQ(table, (BlockTable{{10, 1}, {30, 3}}));
  EXPECT_EQ(table.size(), 2u);
}

TEST(BlockRangesTest, TheyAreMerged) {
  const BlockRanges ranges({{20, 22}, {5, 5}, {10, 12}, {12, 14}, {21, 30}, {11, 13}});
  EXPECT_EQ(std::vector<BlockRanges::Range>(ranges.begin(), ranges.end()),
            (std::vector<BlockRanges::Range>{{10, 14}, {20, 30}}));
  for (const FsBlock block : {10, 13, 20, 29}) EXPECT_TRUE(ranges.contains(block)) << block;
  for (const FsBlock block : {5, 9, 14, 19, 30}) EXPECT_FALSE(ranges.contains(block)) << block;
  EXPECT_FALSE(BlockRanges().contains(0));
}

}  // namespace
}  // namespace mariner::ifsck
