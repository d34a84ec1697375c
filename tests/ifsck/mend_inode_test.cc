#include "ifsck/mend_inode.h"

#include <gtest/gtest.h>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::uint64_t kMode = 0, kSize = 4, kDeleted = 20, kLinks = 26, kBlocks = 28, kMap = 40,
                        kAcl = 104;

class MendInodeTest : public ::testing::Test {
 protected:
  MadeMending made_{"-t ext2 -b 1024"};
  const InodeNumber file_ = made_.find("a/large");
  const std::string before_ = MadeMending::content(*made_.volume, file_);
};

TEST_F(MendInodeTest, WhatIsClaimedTwiceIsCopied) {
  const InodeNumber later = made_.find("many/a file with a long name, number 6");
  ASSERT_GT(later, file_);
  const FsBlock block = made_.map(file_).runs.front().physical;
  made_.put(later, kMap, static_cast<std::uint32_t>(block));
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kClaimedTwice, Done::kCloned));
  EXPECT_EQ(made_.content(file_), before_);
  EXPECT_EQ(made_.content(later).substr(0, 1024), std::string(1024, 'l'));
  EXPECT_NE(made_.map(later).runs.front().physical, block);
}

TEST_F(MendInodeTest, ManyBlocksOfSeveralAreCopied) {
  const InodeNumber later = made_.find("many/a file with a long name, number 6");
  const std::vector<std::byte> inode = made_.inode(file_);
  std::array<std::byte, 60> map;
  std::ranges::copy(std::span(inode).subspan(kMap, 60), map.begin());
  made_.put(later, kMap, map);
  made_.put(later, kSize, static_cast<std::uint32_t>(before_.size()));
  (void)made_.mend();
  EXPECT_EQ(made_.content(file_), before_);
  EXPECT_EQ(made_.content(later), before_);
}

// As where a deleted file is still there on a disk, and what said where its blocks are has become
// contents of a new one.
TEST_F(MendInodeTest, WhatIsCopiedIsNotWrittenOverBefore) {
  const InodeNumber later = made_.find("many/a file with a long name, number 6");
  const BlockMap::Node node = made_.map(file_).nodes.front();
  const std::uint64_t at = made_.layout->bytes_of(node.block).offset;
  made_.put<std::uint32_t>(at + 20, 0x7fffffff);
  std::string contents(1024, '\0');
  ASSERT_TRUE(
      made_.view->read({at, 1024}, std::as_writable_bytes(std::span(contents))).has_value());
  made_.put(later, kMap, static_cast<std::uint32_t>(node.block));
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kMapMade));
  EXPECT_EQ(made_.content(later).substr(0, 1024), contents);
  std::string now = made_.content(file_);
  EXPECT_EQ(now.replace((node.logical + 5) * 1024, 1024, 1024, 'l'), before_);
}

TEST_F(MendInodeTest, WhatCannotBeClaimedIsLeftOut) {
  const FsBlock bitmap = ext2fs_block_bitmap_loc(made_.volume->fs(), 0);
  made_.put(file_, kMap, static_cast<std::uint32_t>(bitmap));
  made_.put(file_, kMap + 4, 0x7fffffffu);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kMapMade));
  const std::string now = made_.content(file_);
  EXPECT_EQ(now.substr(0, 2048), std::string(2048, '\0'));
  EXPECT_EQ(now.substr(2048), before_.substr(2048));
}

TEST_F(MendInodeTest, FieldsSayWhatIsSo) {
  made_.put<std::uint32_t>(file_, kSize, 10);
  made_.put<std::uint32_t>(file_, kBlocks, 2);
  made_.put<std::uint32_t>(file_, kDeleted, 1'700'000'000);
  made_.put<std::uint32_t>(file_, kAcl, 1);
  (void)made_.mend();
  EXPECT_EQ(made_.content(file_), before_);
  EXPECT_EQ(ExtInode(made_.inode(file_)).attributes(), 0u);
}

TEST_F(MendInodeTest, AModeThatNoFileHasIsGuessed) {
  const InodeNumber directory = made_.find("a/b");
  made_.put<std::uint16_t>(file_, kMode, 0x3000 | 0644);
  made_.put<std::uint16_t>(directory, kMode, 0755);
  (void)made_.mend();
  EXPECT_EQ(made_.content(file_), before_);
  EXPECT_EQ(made_.find_again("a/b/sparse"), made_.find("a/b/sparse"));
}

TEST_F(MendInodeTest, AReservedInodeIsNotInUse) {
  made_.put<std::uint16_t>(InodeNumber{10}, kMode, 0x8000);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMode, Done::kReleased));
}

TEST(MendInode, WhoHasNothingWithinHasNoFlagThatSaysSo) {
  MadeMending made{"-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"};
  const InodeNumber file = made.find("a/large");
  const std::string before = MadeMending::content(*made.volume, file);
  made.put(file, 32, ExtInode(made.inode(file)).flags() | EXT4_INLINE_DATA_FL);
  (void)made.mend();
  EXPECT_EQ(made.content(file), before);
}

TEST_F(MendInodeTest, NoTimeOfDeletionIsSet) {
  made_.remove("many", "a file with a long name, number 6");
  const InodeNumber file = 500;
  made_.put<std::uint16_t>(file, kLinks, 0);
  (void)made_.mend();
  EXPECT_NE(ExtInode(made_.inode(file)).deleted_at(), 0u);
}

}  // namespace
}  // namespace mariner::ifsck
