#include "ifsck/mend_work.h"

#include <gtest/gtest.h>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class MendWorkTest : public ::testing::Test {
 protected:
  MadeVolume made_{"-t ext4 -b 1024 -O ^has_journal"};
  const ExtContext context_{*made_.volume, *made_.layout};
};

TEST_F(MendWorkTest, WhatIsAllocatedIsNeitherMarkedNorClaimed) {
  MendWork work(context_, {.findings = {}, .cut_short = false, .directories = {}});
  const FsBlock first = work.allocate().value().value();
  const FsBlock second = work.allocate().value().value();
  EXPECT_NE(first, second);
  EXPECT_EQ(made_.layout->place_of(first).kind, ExtLayout::Kind::kData);
  const Finding claimed{.code = Code::kBlockMarked, .block = first, .expected = 1};
  MendWork other(context_, {.findings = {&claimed, 1}, .cut_short = false, .directories = {}});
  EXPECT_EQ(other.allocate().value().value(), second);
  EXPECT_EQ(made_.overlay.size(), 0u);
}

TEST_F(MendWorkTest, NothingIsAllocatedWhereNotAllIsKnown) {
  MendWork work(context_, {.findings = {}, .cut_short = true, .directories = {}});
  EXPECT_FALSE(work.allocate().value().has_value());
  EXPECT_FALSE(work.allocate_inode().value().has_value());
}

TEST_F(MendWorkTest, AllThereIsCanBeAllocatedAndNoMore) {
  MendWork work(context_, {.findings = {}, .cut_short = false, .directories = {}});
  std::uint64_t blocks = 0;
  while (work.allocate().value()) ++blocks;
  EXPECT_EQ(blocks, ext2fs_free_blocks_count(made_.volume->fs()->super));
}

TEST_F(MendWorkTest, AnInodeIsTakenFromATableThatWasNeverUsed) {
  GroupNumber group = 0;
  while (!context_.is_uninitialized(group, EXT2_BG_INODE_UNINIT)) ++group;
  std::vector<Finding> taken;
  for (GroupNumber each = 0; each < made_.layout->groups(); ++each) {
    for (std::uint32_t i = 0; each != group && i < made_.layout->inodes_per_group(); ++i) {
      taken.push_back({.code = Code::kInodeMarked,
                       .inode = each * made_.layout->inodes_per_group() + i + 1,
                       .expected = 1});
    }
  }
  MendWork work(context_, {.findings = taken, .cut_short = false, .directories = {}});
  const InodeNumber number = work.allocate_inode().value().value();
  EXPECT_EQ(made_.layout->group_of(number), group);
  EXPECT_FALSE(context_.is_uninitialized(group, EXT2_BG_INODE_UNINIT));
  EXPECT_EQ(context_.table_end(group), 1u);
  ASSERT_TRUE(work.finish().has_value());
  EXPECT_EQ(ext2fs_group_desc_csum_verify(made_.volume->fs(), group), 1);
}

TEST_F(MendWorkTest, WhatDoesNotChangeIsNotWritten) {
  MendWork work(context_, {.findings = {}, .cut_short = false, .directories = {}});
  const FsBlock block = made_.layout->inode_place(EXT2_ROOT_INO).offset / 1024;
  std::vector<std::byte> bytes = context_.read_block(block).value();
  ASSERT_TRUE(work.put_block(block, bytes).has_value());
  EXPECT_EQ(made_.overlay.size(), 0u);
  bytes[5] ^= std::byte{1};
  ASSERT_TRUE(work.put_block(block, bytes).has_value());
  EXPECT_EQ(made_.overlay.size(), 1u);
}

TEST_F(MendWorkTest, WhoIsReleasedIsNotInUse) {
  MendWork work(context_, {.findings = {}, .cut_short = false, .directories = {}});
  const InodeNumber file = made_.find("a/large");
  EXPECT_EQ(work.kind_of(file).value(), EXT2_FT_REG_FILE);
  ASSERT_TRUE(work.release(file).has_value());
  EXPECT_EQ(work.kind_of(file).value(), 0);
  EXPECT_NE(ExtInode(work.inode(file).value()).deleted_at(), 0u);
  EXPECT_TRUE(work.checked(file).value().findings.empty());
}

}  // namespace
}  // namespace mariner::ifsck
