#include "ifsck/group_bitmaps.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class GroupBitmapsTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<Code> faults(GroupNumber group) {
    std::vector<Code> codes;
    GroupBitmaps::read(*now_.context, group).value().check([&](const Finding& finding) {
      EXPECT_EQ(finding.group, group);
      codes.push_back(finding.code);
    });
    return codes;
  }

  MadeVolume made_{GetParam()};
  MadeMoment now_{*made_.past};
};

TEST_P(GroupBitmapsTest, SayWhatLibext2fsSays) {
  const ext2_filsys fs = now_.volume->fs();
  ASSERT_EQ(ext2fs_read_bitmaps(fs), 0);
  for (GroupNumber group = 0; group < now_.layout->groups(); ++group) {
    const GroupBitmaps bitmaps = GroupBitmaps::read(*now_.context, group).value();
    EXPECT_EQ(faults(group), std::vector<Code>{});
    for (FsBlock block = bitmaps.first(); block <= bitmaps.last(); ++block) {
      ASSERT_EQ(bitmaps.is_marked(block), ext2fs_test_block_bitmap2(fs->block_map, block) != 0);
    }
    FsBlock free = bitmaps.last() + 1;
    for (FsBlock block = bitmaps.last(); block > bitmaps.first(); --block) {
      if (!bitmaps.is_marked(block)) free = block;
      ASSERT_EQ(bitmaps.next_unmarked(block), free) << block;
    }
    for (std::uint32_t i = 1; i <= now_.layout->inodes_per_group(); ++i) {
      const InodeNumber number = group * now_.layout->inodes_per_group() + i;
      ASSERT_EQ(bitmaps.is_marked_inode(number),
                ext2fs_test_inode_bitmap2(fs->inode_map, number) != 0);
    }
  }
}

TEST_P(GroupBitmapsTest, WhatStandsBehindInodesIsSet) {
  const FsBlock block = ext2fs_inode_bitmap_loc(now_.volume->fs(), 0);
  now_.flip(now_.layout->bytes_of(block).end() - 1, 7);
  EXPECT_EQ(faults(0), std::vector<Code>{Code::kPadding});
}

INSTANTIATE_TEST_SUITE_P(Kinds, GroupBitmapsTest, ::testing::ValuesIn(kKinds));

TEST(GroupBitmapsOfExt4, AreChecked) {
  MadeVolume made("-t ext4 -b 4096");
  MadeMoment now(*made.past);
  now.flip(now.layout->bytes_of(ext2fs_block_bitmap_loc(now.volume->fs(), 0)).offset + 9, 3);
  std::vector<Code> codes;
  GroupBitmaps::read(*now.context, 0).value().check([&](const Finding& finding) {
    codes.push_back(finding.code);
  });
  EXPECT_EQ(codes, std::vector<Code>{Code::kBlockBitmapChecksum});
}

}  // namespace
}  // namespace mariner::ifsck
