#include "ifsck/group_maps.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class GroupMapsTest : public ::testing::TestWithParam<const char*> {
 protected:
  MadeVolume made_{GetParam()};
};

TEST_P(GroupMapsTest, ChangeNothingWhereNothingIsChanged) {
  GroupMaps maps(*made_.volume, *made_.layout);
  for (GroupNumber group = 0; group < made_.layout->groups(); ++group) {
    ASSERT_TRUE(maps.load(group).has_value());
  }
  EXPECT_FALSE(maps.load_another().value());
  EXPECT_TRUE(maps.inode(2).value());
  ASSERT_TRUE(maps.store().has_value());
  EXPECT_EQ(made_.overlay.size(), 0u);
}

// What is marked the census misses, and nothing else: bitmaps, counts and checksums agree.
TEST_P(GroupMapsTest, AreStored) {
  GroupMaps maps(*made_.volume, *made_.layout);
  std::vector<FsBlock> blocks;
  for (GroupNumber group = 0; group < made_.layout->groups(); ++group) {
    const auto block = maps.take_block(ext2fs_group_first_block2(made_.volume->fs(), group));
    ASSERT_TRUE(block.has_value()) << block.error().message;
    blocks.push_back(*block);
  }
  ASSERT_TRUE(maps.store().has_value());
  std::vector<FsBlock> missed;
  for (const Finding& each : made_.census().findings) {
    if (each.code == Finding::Code::kBlockMarked) missed.push_back(each.block);
  }
  std::ranges::sort(blocks);
  std::ranges::sort(missed);
  EXPECT_EQ(missed, blocks);
  for (const FsBlock each : blocks) ASSERT_TRUE(maps.set_blocks(each, 1, false).has_value());
  ASSERT_TRUE(maps.store().has_value());
  EXPECT_EQ(made_.census().findings_all, 0u);
}

TEST_P(GroupMapsTest, HaveInodes) {
  GroupMaps maps(*made_.volume, *made_.layout);
  const InodeNumber last = made_.layout->inodes();
  EXPECT_FALSE(maps.inode(last).value());
  ASSERT_TRUE(maps.set_inode(last, true).has_value());
  ASSERT_TRUE(maps.add_directories(last, 1).has_value());
  ASSERT_TRUE(maps.store().has_value());
  bool marked = false;
  for (const Finding& each : made_.census().findings) {
    marked = marked || (each.code == Finding::Code::kInodeMarked && each.inode == last);
    EXPECT_NE(each.code, Finding::Code::kInodeBitmapChecksum);
    EXPECT_NE(each.code, Finding::Code::kGroupChecksum);
  }
  EXPECT_TRUE(marked);
}

TEST_P(GroupMapsTest, AreFullInTheEnd) {
  GroupMaps maps(*made_.volume, *made_.layout);
  std::uint64_t taken = 0;
  auto block = maps.take_block(100);
  for (; block; block = maps.take_block(*block)) ++taken;
  EXPECT_EQ(block.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(taken, ext2fs_free_blocks_count(made_.volume->fs()->super));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GroupMapsTest,
                         ::testing::Values("-t ext4 -b 4096",
                                           "-t ext4 -b 1024 -O ^flex_bg,^metadata_csum,uninit_bg",
                                           "-t ext4 -b 2048 -O meta_bg,^resize_inode -g 2048"));

}  // namespace
}  // namespace mariner::ifsck
