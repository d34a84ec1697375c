#include "ifsck/inode_check.h"

#include <gtest/gtest.h>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class InodeCheckTest : public ::testing::Test {
 protected:
  CheckedInode check(InodeNumber number, bool follow = true) {
    std::vector<std::byte> bytes = made_.inode(number);
    const std::vector<std::byte> before = bytes;
    CheckedInode checked = check_inode(*now_.context, number, bytes, follow).value();
    EXPECT_EQ(bytes, before);
    return checked;
  }

  MadeVolume made_{"-t ext2 -b 1024"};
  MadeMoment now_{*made_.past};
};

TEST_F(InodeCheckTest, TellsWhatAnInodeIs) {
  const CheckedInode root = check(EXT2_ROOT_INO);
  EXPECT_EQ(root.kind, EXT2_FT_DIR);
  EXPECT_TRUE(root.counted && root.directory && !root.inlined);
  EXPECT_GE(root.links, 4u);
  EXPECT_TRUE(root.findings.empty());

  const CheckedInode file = check(made_.find("a/large"));
  EXPECT_EQ(file.kind, EXT2_FT_REG_FILE);
  EXPECT_EQ(file.links, 2u);
  EXPECT_FALSE(file.directory);
  std::uint64_t claims = 0;
  file.for_each_claim([&](FsBlock) { ++claims; });
  EXPECT_EQ(claims, file.map.blocks());
  EXPECT_GT(claims, 3000u);

  EXPECT_EQ(check(made_.layout->inodes()).kind, 0u);  // nobody
  const CheckedInode resize = check(EXT2_RESIZE_INO);
  EXPECT_FALSE(resize.counted);
  EXPECT_GT(resize.map.blocks(), 0u);
}

TEST_F(InodeCheckTest, ALinkIsAsLongAsItsTarget) {
  const InodeNumber number = made_.find("short");
  EXPECT_TRUE(check(number).findings.empty());
  for (const std::uint32_t size : {6u, 8u, 59u, 60u, 1024u}) {
    made_.put(number, InodeAt::kSize, size);
    const CheckedInode link = check(number);
    ASSERT_FALSE(link.findings.empty()) << size;
    EXPECT_EQ(link.findings[0].code, Finding::Code::kInodeFields) << size;
  }
}

// As e2fsck says: kernels have left something there.
TEST_F(InodeCheckTest, WhatADeviceHasBehindItsNumberIsNothingWrong) {
  const InodeNumber number = made_.find("short");
  made_.put<std::uint16_t>(number, InodeAt::kMode, LINUX_S_IFIFO | 0644);
  made_.put<std::uint32_t>(number, InodeAt::kSize, 0);
  made_.put<std::uint32_t>(number, InodeAt::kMap + 28, 5);
  const CheckedInode device = check(number);
  EXPECT_EQ(device.kind, EXT2_FT_FIFO);
  EXPECT_TRUE(device.findings.empty());
}

TEST_F(InodeCheckTest, FollowsNoBlocksUnlessItIsToldTo) {
  const CheckedInode file = check(made_.find("a/large"), false);
  EXPECT_EQ(file.map.blocks(), 0u);
  ASSERT_EQ(file.findings.size(), 1u);
  EXPECT_EQ(file.findings[0].code, Finding::Code::kInodeMap);
}

TEST_F(InodeCheckTest, ABlockOfAttributesHasItsMagicNumber) {
  const FsBlock block = made_.layout->blocks() - 1;
  EXPECT_FALSE(check_attributes(*now_.context, 12, block).value().good);
  const std::uint64_t at = made_.layout->bytes_of(block).offset;
  now_.put<std::uint32_t>(at, 0xEA020000);
  now_.put<std::uint32_t>(at + 4, 3);
  EXPECT_FALSE(check_attributes(*now_.context, 12, block).value().good);
  now_.put<std::uint32_t>(at + 8, 1);
  const CheckedAttributes checked = check_attributes(*now_.context, 12, block).value();
  EXPECT_TRUE(checked.good);
  EXPECT_EQ(checked.inodes, 3u);
}

}  // namespace
}  // namespace mariner::ifsck
