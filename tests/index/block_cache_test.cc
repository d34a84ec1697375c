#include "index/block_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner::index {
namespace {

constexpr std::size_t kBytes = 4096;

class BlockCacheTest : public ::testing::Test {
 protected:
  // Inserts it and appends to gone_ what went for it. False when there was no room.
  bool insert(std::uint32_t address) {
    Payload block = Payload::zeroed(kBytes);
    block.data()[0] = static_cast<std::byte>(address);
    return cache_.insert({address}, std::move(block),
                         [&](BlockAddress gone) { gone_ += std::to_string(gone.value) + " "; });
  }
  bool has(std::uint32_t address) {
    BlockCache::Entry* const entry = cache_.find({address});
    if (entry == nullptr) return false;
    EXPECT_EQ(entry->address.value, address);
    EXPECT_EQ(entry->block.data()[0], static_cast<std::byte>(address));
    return true;
  }
  void set_dirty(std::uint32_t address, bool dirty) {
    cache_.set_dirty(*cache_.find({address}), dirty);
  }

  BlockCache cache_{4, kBytes};
  std::string gone_;
};

TEST_F(BlockCacheTest, HoldsAsManyAsItMay) {
  EXPECT_FALSE(has(1));
  for (std::uint32_t i = 1; i <= 4; ++i) EXPECT_TRUE(insert(i));
  EXPECT_EQ(cache_.bytes(), 4 * kBytes);
  EXPECT_TRUE(insert(5));
  EXPECT_EQ(cache_.bytes(), cache_.bytes_max());
  EXPECT_TRUE(has(5));
}

TEST_F(BlockCacheTest, WhatNobodyLookedAtGoesInTheOrderInWhichItCame) {
  for (std::uint32_t i = 1; i <= 8; ++i) ASSERT_TRUE(insert(i));
  EXPECT_EQ(gone_, "1 2 3 4 ");
}

TEST_F(BlockCacheTest, WhatWasLookedAtLatelyStays) {
  for (std::uint32_t i = 1; i <= 5; ++i) ASSERT_TRUE(insert(i));  // takes the mark of all
  ASSERT_EQ(gone_, "1 ");
  EXPECT_TRUE(has(2));
  EXPECT_TRUE(has(3));
  ASSERT_TRUE(insert(6));
  EXPECT_EQ(gone_, "1 4 ");
}

TEST_F(BlockCacheTest, DirtyOnesAreNeverEvicted) {
  for (std::uint32_t i = 1; i <= 4; ++i) ASSERT_TRUE(insert(i));
  set_dirty(1, true);
  set_dirty(3, true);
  set_dirty(3, true);  // once
  EXPECT_EQ(cache_.dirty_bytes(), 2 * kBytes);
  for (std::uint32_t i = 5; i <= 20; ++i) ASSERT_TRUE(insert(i));
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(3));
}

TEST_F(BlockCacheTest, AllDirtyIsNoRoom) {
  for (std::uint32_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(insert(i));
    set_dirty(i, true);
  }
  EXPECT_FALSE(insert(5));
  EXPECT_FALSE(has(5));
  EXPECT_EQ(gone_, "");
  set_dirty(2, false);
  EXPECT_TRUE(insert(5));
  EXPECT_EQ(gone_, "2 ");
}

TEST_F(BlockCacheTest, ItsBoundMayChange) {
  for (std::uint32_t i = 1; i <= 4; ++i) ASSERT_TRUE(insert(i));
  cache_.set_blocks_max(6);
  EXPECT_TRUE(insert(5));
  EXPECT_TRUE(insert(6));
  EXPECT_EQ(gone_, "");
  set_dirty(1, true);
  set_dirty(4, true);
  cache_.set_blocks_max(3);
  EXPECT_EQ(cache_.bytes(), 6 * kBytes);
  EXPECT_TRUE(insert(7));  // others go for it, above the bound and then for its place
  EXPECT_EQ(cache_.bytes(), 3 * kBytes);
  EXPECT_TRUE(has(1) && has(4) && has(7));
  cache_.set_blocks_max(1);
  EXPECT_FALSE(insert(8));
  EXPECT_EQ(cache_.bytes(), 2 * kBytes);  // the dirty ones
  cache_.set_blocks_max(3);
  EXPECT_TRUE(insert(8));
  EXPECT_TRUE(has(1) && has(4) && has(8));
}

TEST_F(BlockCacheTest, ErasesDirtyOnesToo) {
  for (std::uint32_t i = 1; i <= 4; ++i) ASSERT_TRUE(insert(i));
  set_dirty(2, true);
  cache_.erase({2});
  cache_.erase({2});
  EXPECT_EQ(cache_.dirty_bytes(), 0u);
  EXPECT_EQ(cache_.bytes(), 3 * kBytes);
  EXPECT_FALSE(has(2));
  for (const std::uint32_t i : {1u, 3u, 4u}) EXPECT_TRUE(has(i));
}

TEST_F(BlockCacheTest, OneOfNothingHasNoRoom) {
  BlockCache none(0, kBytes);
  EXPECT_FALSE(none.insert({1}, Payload::zeroed(kBytes), [](BlockAddress) {}));
  EXPECT_EQ(none.find({1}), nullptr);
}

}  // namespace
}  // namespace mariner::index
