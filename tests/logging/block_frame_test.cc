#include "logging/block_frame.h"

#include <gtest/gtest.h>

#include <array>

#include "proto/bytes.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

constexpr BlockKind kKind{0x0807060504030201, 0x0c0b0a09};

TEST(BlockFrame, GoldenBytes) {
  std::array<std::byte, kBlockBytes> block{};
  block[16] = std::byte{0x55};
  seal_block(block, kKind);
  EXPECT_EQ(test::hex(std::span(block).first(12)), "01020304 05060708 090a0b0c");
  EXPECT_EQ(block[16], std::byte{0x55});
  EXPECT_TRUE(is_sealed(block, kKind));
}

TEST(BlockFrame, SealingTwiceGivesTheSame) {
  std::array<std::byte, kBlockBytes> block{};
  seal_block(block, kKind);
  const auto once = block;
  seal_block(block, kKind);
  EXPECT_EQ(block, once);
}

TEST(BlockFrame, AnotherKindVersionOrAnyFlippedBitIsNone) {
  std::array<std::byte, kBlockBytes> block{};
  seal_block(block, kKind);
  EXPECT_FALSE(is_sealed(block, {kKind.magic + 1, kKind.version}));
  EXPECT_FALSE(is_sealed(block, {kKind.magic, kKind.version + 1}));
  for (std::size_t bit = 0; bit < block.size() * 8; bit += 7) {
    block[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(is_sealed(block, kKind)) << "bit " << bit;
    block[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace mariner::logging
