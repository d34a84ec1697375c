#include "ifsck/block_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using What = BlockMap::Fault::What;

// By logical block; below 0: nodes, which are counted.
struct Told {
  std::map<std::uint64_t, FsBlock> contents;
  std::vector<FsBlock> nodes;
};

int tell(ext2_filsys /*fs*/, blk64_t* block, e2_blkcnt_t logical, blk64_t /*in*/, int /*at*/,
         void* to) {
  auto& told = *static_cast<Told*>(to);
  if (logical < 0) {
    told.nodes.push_back(*block);
  } else {
    told.contents[static_cast<std::uint64_t>(logical)] = *block;
  }
  return 0;
}

// As libext2fs has it.
Told told_of(MadeVolume& made, InodeNumber number) {
  Told told;
  EXPECT_EQ(
      ext2fs_block_iterate3(made.volume->fs(), number, BLOCK_FLAG_READ_ONLY, nullptr, tell, &told),
      0);
  std::ranges::sort(told.nodes);
  return told;
}

class BlockMapTest : public ::testing::TestWithParam<const char*> {
 protected:
  BlockMap map(InodeNumber number) { return map(number, made_.inode(number)); }
  BlockMap map(InodeNumber number, const std::vector<std::byte>& inode) {
    return map_blocks(*made_.volume, *made_.layout, number, inode).value();
  }
  std::vector<InodeNumber> used() {
    std::vector<InodeNumber> all;
    EXPECT_EQ(ext2fs_read_bitmaps(made_.volume->fs()), 0);
    for (InodeNumber i = 1; i <= made_.layout->inodes(); ++i) {
      if (ext2fs_test_inode_bitmap2(made_.volume->fs()->inode_map, i) == 0) continue;
      if (has_block_map(made_.inode(i))) all.push_back(i);
    }
    return all;
  }
  MadeVolume made_{GetParam()};
};

TEST_P(BlockMapTest, IsWhatLibext2fsSays) {
  std::size_t nodes = 0;
  for (const InodeNumber number : used()) {
    const BlockMap ours = map(number);
    EXPECT_TRUE(ours.faults.empty()) << number;
    const Told told = told_of(made_, number);
    std::map<std::uint64_t, FsBlock> contents;
    for (const BlockMap::Run& run : ours.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) contents[run.logical + i] = run.physical + i;
    }
    EXPECT_EQ(contents, told.contents) << number;
    std::vector<FsBlock> found;
    for (const BlockMap::Node& node : ours.nodes) found.push_back(node.block);
    std::ranges::sort(found);
    EXPECT_EQ(found, told.nodes) << number;
    EXPECT_EQ(ours.blocks(), contents.size() + found.size());
    nodes += found.size();
  }
  EXPECT_GT(nodes, 2u);
}

// What inodes claim, extended attributes aside (there are none), and what has its place, is what
// the bitmap has.
TEST_P(BlockMapTest, EveryUsedBlockIsSomebodys) {
  std::vector<bool> claimed(made_.layout->blocks());
  const auto claim = [&](FsBlock first, std::uint64_t count, InodeNumber number) {
    for (FsBlock each = first; each < first + count; ++each) {
      EXPECT_FALSE(claimed[each]) << each << " by inode " << number;
      claimed[each] = true;
    }
  };
  for (const InodeNumber number : used()) {
    // It claims what is reserved for group descriptors, which have their place.
    if (number == EXT2_RESIZE_INO) continue;
    const BlockMap ours = map(number);
    for (const BlockMap::Run& run : ours.runs) claim(run.physical, run.count, number);
    for (const BlockMap::Node& node : ours.nodes) claim(node.block, 1, number);
  }
  if (made_.volume->fs()->super->s_reserved_gdt_blocks > 0) {
    for (const BlockMap::Node& node : map(EXT2_RESIZE_INO).nodes) {
      if (made_.layout->place_of(node.block).kind == ExtLayout::Kind::kData) {
        claim(node.block, 1, EXT2_RESIZE_INO);
      }
    }
  }
  for (FsBlock each = 0; each < made_.layout->blocks(); ++each) {
    const bool placed = made_.layout->place_of(each).kind != ExtLayout::Kind::kData;
    const bool used_block = each < made_.volume->fs()->super->s_first_data_block ||
                            ext2fs_test_block_bitmap2(made_.volume->fs()->block_map, each) != 0;
    EXPECT_EQ(placed || claimed[each], used_block) << each;
    EXPECT_FALSE(placed && claimed[each]) << each;
  }
}

TEST_P(BlockMapTest, WhateverInodesAndNodesSayItEnds) {
  std::mt19937_64 random(7);
  const InodeNumber number = made_.find("a/large");
  const BlockMap good = map(number);
  ASSERT_FALSE(good.nodes.empty());
  std::size_t faults = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> inode = made_.inode(number);
    made_.overlay.clear();
    for (int k = 0; k < 3; ++k) {
      const auto byte = static_cast<std::byte>(random());
      if (random() % 2 == 0) {
        inode[40 + random() % 60] = byte;
      } else {
        const FsBlock node = good.nodes[random() % good.nodes.size()].block;
        const std::uint64_t at = random() % (random() % 2 == 0 ? 64 : made_.layout->block_bytes());
        ASSERT_TRUE(
            made_.view->write({made_.layout->bytes_of(node).offset + at, 1}, std::span(&byte, 1))
                .has_value());
      }
    }
    const BlockMap ours = map(number, inode);
    EXPECT_LE(ours.blocks(), made_.layout->blocks());
    faults += ours.faults.size();
    for (const BlockMap::Run& run : ours.runs) {
      EXPECT_TRUE(made_.layout->may_claim(run.physical));
      EXPECT_TRUE(made_.layout->may_claim(run.physical + run.count - 1));
    }
  }
  EXPECT_GT(faults, 20u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockMapTest, ::testing::ValuesIn(kKinds));

class BadExtentsTest : public ::testing::Test {
 protected:
  // The root has these extents, by 16-bit words.
  std::vector<BlockMap::Fault> faults(const std::vector<std::array<std::uint32_t, 3>>& extents,
                                      std::uint16_t depth = 0) {
    std::vector<std::byte> inode(256);
    const std::uint16_t head[] = {0xf30a, static_cast<std::uint16_t>(extents.size()), 4, depth};
    inode[0x21 - 1 + 2] = std::byte{0x08};  // EXT4_EXTENTS_FL
    std::memcpy(inode.data() + 40, head, sizeof head);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const auto& [logical, count, physical] = extents[i];
      const std::uint32_t words[] = {logical, count, physical};
      const std::uint32_t index[] = {logical, physical, 0};
      std::memcpy(inode.data() + 52 + 12 * i, depth == 0 ? words : index, 12);
    }
    last_ = map_blocks(*made_.volume, *made_.layout, 12, inode).value();
    return last_.faults;
  }
  MadeVolume made_{"-t ext4 -b 4096"};
  BlockMap last_;
};

TEST_F(BadExtentsTest, AreNamed) {
  EXPECT_TRUE(faults({{0, 2, 5000}, {2, 1, 5002}, {9, 32768 + 3, 6000}}).empty());
  EXPECT_EQ(last_.runs, (std::vector<BlockMap::Run>{{0, 5000, 3, false}, {9, 6000, 3, true}}));
  using Faults = std::vector<BlockMap::Fault>;
  EXPECT_EQ(faults({{0, 2, 5000}, {1, 1, 6000}}), (Faults{{What::kOrder, 0, 1, 0}}));
  EXPECT_EQ(faults({{7, 0, 5000}}), (Faults{{What::kEmpty, 0, 7, 5000}}));
  EXPECT_EQ(faults({{0, 2, 12287}}), (Faults{{What::kOutside, 0, 0, 12287}}));
  EXPECT_EQ(faults({{0, 1, 0}}), (Faults{{What::kOutside, 0, 0, 0}}));
  EXPECT_EQ(faults({{0, 0, 5000}, {5, 0, 5000}}, 1),
            (Faults{{What::kRepeated, 0, 5, 5000}, {What::kNoNode, 5000, 0, 5000}}));
  EXPECT_EQ(faults({{0, 0, 5000}}, 6), (Faults{{What::kNoNode, 0, 0, 0}}));
  std::vector<std::array<std::uint32_t, 3>> much;
  for (std::uint32_t i = 0; i < 4; ++i) much.push_back({i * 4000, 4000, 5000});
  EXPECT_EQ(faults(much), (Faults{{What::kTooMany, 0, 12000, 0}}));
}

}  // namespace
}  // namespace mariner::ifsck
