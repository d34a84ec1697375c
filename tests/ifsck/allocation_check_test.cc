#include "ifsck/allocation_check.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Findings = std::vector<Finding>;

class AllocationCheckTest : public ::testing::Test {
 protected:
  Findings found() {
    Findings all = made_.census().findings;
    made_.overlay.clear();
    return all;
  }
  // Turns a bit of a bitmap around.
  void flip(FsBlock bitmap, std::uint64_t bit) {
    const std::uint64_t at = made_.layout->bytes_of(bitmap).offset + bit / 8;
    std::byte byte{};
    ASSERT_TRUE(made_.view->read({at, 1}, std::span(&byte, 1)).has_value());
    made_.put(at, byte ^ static_cast<std::byte>(1u << bit % 8));
  }
  MadeVolume made_{"-t ext2 -b 1024"};
  const ext2_filsys fs_ = made_.volume->fs();
};

TEST_F(AllocationCheckTest, EachBitSaysWhatIsSo) {
  const FsBlock first = ext2fs_group_first_block2(fs_, 1);
  flip(ext2fs_block_bitmap_loc(fs_, 1), 0);
  EXPECT_EQ(
      found(),
      (Findings{
          {.code = Code::kBlockMarked, .block = first, .group = 1, .expected = 1, .found = 0}}));
  flip(ext2fs_inode_bitmap_loc(fs_, 0), 1);  // the root
  EXPECT_EQ(found(),
            (Findings{{.code = Code::kInodeMarked, .inode = 2, .expected = 1, .found = 0}}));
}

TEST_F(AllocationCheckTest, WhatIsBehindTheEndIsSet) {
  const FsBlock bitmap = ext2fs_inode_bitmap_loc(fs_, 0);
  flip(bitmap, made_.layout->inodes_per_group() + 5);
  EXPECT_EQ(found(), (Findings{{.code = Code::kPadding, .block = bitmap}}));
}

TEST_F(AllocationCheckTest, CountsAreThoseOfTheBitmaps) {
  // Of group 0, and of all (struct ext2_group_desc, ext2_super_block).
  const std::uint64_t descriptor = made_.layout->bytes_of(2).offset;
  const std::uint32_t blocks = ext2fs_bg_free_blocks_count(fs_, 0);
  const std::uint32_t inodes = ext2fs_bg_free_inodes_count(fs_, 0);
  const std::uint32_t directories = ext2fs_bg_used_dirs_count(fs_, 0);
  made_.put<std::uint16_t>(descriptor + 12, 1);
  made_.put<std::uint16_t>(descriptor + 14, 2);
  made_.put<std::uint16_t>(descriptor + 16, 3);
  made_.put<std::uint32_t>(1024 + 12, 4);
  made_.put<std::uint32_t>(1024 + 16, 5);
  const GroupNumber all = Finding::kAll;
  EXPECT_EQ(found(), (Findings{{.code = Code::kFreeBlocks, .expected = blocks, .found = 1},
                               {.code = Code::kFreeInodes, .expected = inodes, .found = 2},
                               {.code = Code::kDirectories, .expected = directories, .found = 3},
                               {.code = Code::kFreeBlocks,
                                .group = all,
                                .expected = ext2fs_free_blocks_count(fs_->super),
                                .found = 4},
                               {.code = Code::kFreeInodes,
                                .group = all,
                                .expected = fs_->super->s_free_inodes_count,
                                .found = 5}}));
}

TEST(AllocationCheck, ChecksumsOfBitmapsAndDescriptorsAreVerified) {
  MadeVolume made{"-t ext4 -b 4096"};
  const FsBlock bitmap = ext2fs_block_bitmap_loc(made.volume->fs(), 0);
  made.put<std::uint8_t>(made.layout->bytes_of(bitmap).offset, 0xfe);
  made.put<std::uint16_t>(made.layout->bytes_of(1).offset + 12, 1);
  std::vector<Code> codes;
  for (const Finding& each : made.census().findings) codes.push_back(each.code);
  EXPECT_TRUE(std::ranges::count(codes, Code::kBlockBitmapChecksum) == 1);
  EXPECT_TRUE(std::ranges::count(codes, Code::kGroupChecksum) == 1);
}

}  // namespace
}  // namespace mariner::ifsck
