#include "logging/first_blocks.h"

#include <gtest/gtest.h>

#include "proto/units.h"
#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::noise;

TEST(FirstBlocks, AreThoseThatHadAHashFirst) {
  FirstBlocks firsts(7);
  const auto a = FirstBlocks::hash_of(noise(1, kBlockBytes));
  const auto b = FirstBlocks::hash_of(noise(2, kBlockBytes));
  EXPECT_EQ(firsts.add(0, a), 0u);
  EXPECT_EQ(firsts.add(2, b), 2u);
  EXPECT_EQ(firsts.add(3, a), 0u);
  EXPECT_EQ(firsts.add(6, b), 2u);
  EXPECT_EQ(firsts.add(4, a), 0u);
}

TEST(FirstBlocks, WithHashesThatBeginAlikeAreToldApart) {
  FirstBlocks firsts(100);
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(firsts.add(i, {~0ull, i}), i);
  FirstBlocks more(100);
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(more.add(i, {~0ull, i % 50}), i % 50);
}

TEST(FirstBlocks, OfMany) {
  FirstBlocks firsts(10000);
  Bytes block(kBlockBytes);
  for (std::uint32_t i = 0; i < 10000; ++i) {
    block[0] = static_cast<std::byte>(1 + i % 250);
    block[1] = static_cast<std::byte>(i % 1000 / 250);
    ASSERT_EQ(firsts.add(i, FirstBlocks::hash_of(block)), i % 1000);
  }
}

TEST(IsZeroBlock, EveryByteCounts) {
  Bytes block(kBlockBytes);
  EXPECT_TRUE(is_zero_block(block));
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = std::byte{1};
    ASSERT_FALSE(is_zero_block(block)) << i;
    block[i] = std::byte{0};
  }
  EXPECT_TRUE(is_zero_block({}));
  EXPECT_TRUE(is_zero_block(std::span(block).first(8)));
  block[6] = std::byte{1};
  EXPECT_FALSE(is_zero_block(std::span(block).first(7)));
}

}  // namespace
}  // namespace mariner::logging
