#include "uvfs/moving_blocks.h"

#include <gtest/gtest.h>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

class MovingBlocksTest : public ::testing::Test {
 protected:
  char first(MovingBlocks& blocks, Lbn block) {
    std::vector<std::byte> bytes(kBlockBytes);
    EXPECT_TRUE(blocks.read({block, BlockCount{1}}, bytes).has_value());
    return static_cast<char>(bytes[0]);
  }
  MadeWrites made_{"-t ext2 -b 4096"};
};

TEST_F(MovingBlocksTest, ABlockIsWhatItWasAtTheMoment) {
  const Lbn one{11'000};
  const Lbn other{11'200};
  const auto a = made_.put<std::uint8_t>(one.byte_offset(), 'a');
  const auto b = made_.put<std::uint8_t>(other.byte_offset(), 'b');
  const auto c = made_.put<std::uint8_t>(one.byte_offset(), 'c');
  auto past = made_.past();
  auto timelines = BlockTimelines::open(past, {a, c}).value();
  MovingBlocks blocks(timelines);
  EXPECT_EQ(first(blocks, one), 'a');
  EXPECT_EQ(first(blocks, other), 0);
  blocks.move_to(b);
  EXPECT_EQ(first(blocks, one), 'a');
  EXPECT_EQ(first(blocks, other), 'b');
  blocks.move_to(c);
  EXPECT_EQ(first(blocks, one), 'c');
  EXPECT_EQ(first(blocks, other), 'b');
}

TEST_F(MovingBlocksTest, WhatNobodyWroteToIsReadOnce) {
  const Lbn one{11'008};
  (void)made_.put<std::uint8_t>(one.byte_offset(), 'a');
  const auto last = made_.put<std::uint8_t>(kBlockBytes * 11'500, 'b');
  auto past = made_.past();
  CountedPast counted(past);
  auto timelines = BlockTimelines::open(counted, {{}, last}).value();
  MovingBlocks blocks(timelines);
  (void)first(blocks, one);
  EXPECT_EQ(counted.reads, 1u);
  // It was read with those beside it.
  (void)first(blocks, one + BlockCount{1});
  EXPECT_EQ(counted.reads, 1u);
  blocks.move_to(last);
  EXPECT_EQ(first(blocks, one + BlockCount{1}), 0);
  EXPECT_EQ(counted.reads, 1u);
  EXPECT_EQ(first(blocks, one), 'a');
  EXPECT_EQ(counted.reads, 2u);
  EXPECT_EQ(counted.blocks, MovingBlocks::kAhead + 1);
}

TEST_F(MovingBlocksTest, TheVolumeHasAnEnd) {
  const auto last = made_.put<std::uint8_t>(0, 1);
  auto past = made_.past();
  auto timelines = BlockTimelines::open(past, {{}, last}).value();
  MovingBlocks blocks(timelines);
  const std::uint64_t all = past.size_bytes() / kBlockBytes;
  (void)first(blocks, Lbn{all - 1});
  std::vector<std::byte> bytes(kBlockBytes);
  EXPECT_FALSE(blocks.read({Lbn{all + 100}, BlockCount{1}}, bytes).has_value());
  // More than is kept.
  std::vector<std::byte> many(3 * MovingBlocks::kBlocksMax / 2 * kBlockBytes);
  EXPECT_TRUE(
      blocks.read({Lbn{0}, BlockCount{3 * MovingBlocks::kBlocksMax / 2}}, many).has_value());
}

}  // namespace
}  // namespace mariner::uvfs
