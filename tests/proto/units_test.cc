#include "proto/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace mariner {
namespace {

static_assert(!std::is_convertible_v<SequenceNumber, Epoch>);
static_assert(!std::is_convertible_v<Lbn, BlockCount>);

constexpr BlockRange blocks(std::uint64_t first, std::uint64_t count) { return {{first}, {count}}; }

TEST(BlockRange, HalfOpen) {
  const BlockRange range = blocks(10, 5);
  EXPECT_EQ(range.end(), Lbn{15});
  EXPECT_TRUE(range.contains(Lbn{10}));
  EXPECT_TRUE(range.contains(Lbn{14}));
  EXPECT_FALSE(range.contains(Lbn{15}));
  EXPECT_FALSE(range.contains(Lbn{9}));
}

TEST(BlockRange, OverlapsOnlyWhatSharesABlock) {
  EXPECT_TRUE(blocks(10, 5).overlaps(blocks(14, 1)));
  EXPECT_TRUE(blocks(10, 5).overlaps(blocks(0, 11)));
  EXPECT_FALSE(blocks(10, 5).overlaps(blocks(15, 5)));
  EXPECT_FALSE(blocks(10, 5).overlaps(blocks(5, 5)));
  EXPECT_TRUE(blocks(10, 5).overlaps(blocks(12, 1)));
}

TEST(BlockRange, IntersectionAndContainment) {
  EXPECT_EQ(blocks(10, 5).intersect(blocks(12, 10)), blocks(12, 3));
  EXPECT_TRUE(blocks(10, 5).intersect(blocks(15, 5)).empty());
  EXPECT_TRUE(blocks(10, 5).contains(blocks(10, 5)));
  EXPECT_FALSE(blocks(10, 5).contains(blocks(10, 6)));
  EXPECT_TRUE(BlockRange::between({9}, {3}).empty());
}

struct Covering {
  ByteRange bytes;
  BlockRange covering;
  std::uint64_t inner_first;
  std::uint64_t inner_count;
};

TEST(ByteRange, CoveringAndInnerBlocks) {
  for (const Covering& c :
       {Covering{{0, 4096}, blocks(0, 1), 0, 1}, Covering{{512, 512}, blocks(0, 1), 1, 0},
        Covering{{512, 4096}, blocks(0, 2), 1, 0}, Covering{{4096, 8192}, blocks(1, 2), 1, 2},
        Covering{{4608, 8192}, blocks(1, 3), 2, 1}, Covering{{4095, 2}, blocks(0, 2), 1, 0}}) {
    EXPECT_EQ(c.bytes.covering_blocks(), c.covering) << c.bytes.offset;
    EXPECT_EQ(c.bytes.inner_blocks().count.value, c.inner_count) << c.bytes.offset;
    if (c.inner_count > 0) {
      EXPECT_EQ(c.bytes.inner_blocks().first.value, c.inner_first);
    }
  }
}

TEST(ByteRange, Alignment) {
  EXPECT_TRUE((ByteRange{4096, 8192}).block_aligned());
  EXPECT_FALSE((ByteRange{512, 4096}).block_aligned());
  EXPECT_FALSE((ByteRange{4096, 512}).block_aligned());
  EXPECT_EQ(to_bytes(blocks(2, 3)), (ByteRange{8192, 12288}));
}

TEST(Ordinal, NextAndOrder) {
  EXPECT_EQ(SequenceNumber{4}.next(), SequenceNumber{5});
  EXPECT_LT(SequenceNumber{4}, SequenceNumber{5});
}

}  // namespace
}  // namespace mariner
