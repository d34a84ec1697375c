#include "ifsck/inode_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Inodes without checksums, so that each damage is found for what it is.
class InodeScanTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMode = 0, kSize = 4, kDeleted = 20, kLinks = 26, kBlocks = 28,
                                 kFlags = 32, kFirst = 40, kAcl = 104, kFragment = 112;

  [[nodiscard]] std::vector<Finding> of(Code code) {
    std::vector<Finding> found = made_.census().findings;
    std::erase_if(found, [&](const Finding& each) { return each.code != code; });
    made_.overlay.clear();
    return found;
  }
  using Findings = std::vector<Finding>;

  MadeVolume made_{"-t ext2 -b 1024"};
  const InodeNumber file_ = made_.find("a/large");
  const std::uint64_t size_ = 6u << 20;
};

TEST_F(InodeScanTest, ModesSizesAndCountsAreChecked) {
  made_.put<std::uint16_t>(file_, kMode, 0x3000);
  EXPECT_EQ(of(Code::kInodeMode),
            (Findings{{.code = Code::kInodeMode, .inode = file_, .found = 0x3000}}));
  made_.put<std::uint32_t>(file_, kSize, 10);
  EXPECT_EQ(
      of(Code::kInodeSize),
      (Findings{
          {.code = Code::kInodeSize, .inode = file_, .expected = size_ - 1024, .found = 10}}));
  made_.put<std::uint32_t>(file_, kBlocks, 2);
  const Findings blocks = of(Code::kInodeBlocks);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].inode, file_);
  EXPECT_EQ(blocks[0].found, 2u);
  EXPECT_EQ(
      blocks[0].expected,
      map_blocks(*made_.volume, *made_.layout, file_, made_.inode(file_)).value().blocks() * 2);
}

TEST_F(InodeScanTest, WhatIsInUseIsNotDeletedNorHasFragments) {
  made_.put<std::uint32_t>(file_, kDeleted, 1'700'000'000);
  EXPECT_EQ(of(Code::kInodeDeleted),
            (Findings{{.code = Code::kInodeDeleted, .inode = file_, .found = 1}}));
  made_.put<std::uint16_t>(file_, kLinks, 0);
  EXPECT_EQ(of(Code::kInodeDeleted), (Findings{{.code = Code::kInodeDeleted, .inode = file_}}));
  made_.put<std::uint32_t>(file_, kFragment, 1);
  EXPECT_EQ(of(Code::kInodeFields), (Findings{{.code = Code::kInodeFields, .inode = file_}}));
}

TEST_F(InodeScanTest, BlocksHaveOneOwner) {
  const InodeNumber other = made_.find("a/b/sparse");
  const FsBlock block =
      map_blocks(*made_.volume, *made_.layout, other, made_.inode(other)).value().runs[0].physical;
  made_.put<std::uint32_t>(file_, kFirst + 4, static_cast<std::uint32_t>(block));
  const Findings twice = of(Code::kClaimedTwice);
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].block, block);
  const FsBlock bitmap = ext2fs_block_bitmap_loc(made_.volume->fs(), 1);
  made_.put<std::uint32_t>(file_, kFirst + 4, static_cast<std::uint32_t>(bitmap));
  EXPECT_EQ(
      of(Code::kClaimsStructure),
      (Findings{{.code = Code::kClaimsStructure, .inode = file_, .block = bitmap, .found = 1}}));
  made_.put<std::uint32_t>(file_, kFirst + 4, 0x7fffffff);
  const Findings outside = of(Code::kInodeMap);
  ASSERT_EQ(outside.size(), 1u);
  EXPECT_EQ(outside[0].block, 0x7fffffffu);
}

TEST_F(InodeScanTest, AttributesAreWhatTheySay) {
  const FsBlock block =
      map_blocks(*made_.volume, *made_.layout, file_, made_.inode(file_)).value().runs[0].physical;
  made_.put<std::uint32_t>(file_, kAcl, static_cast<std::uint32_t>(block));
  EXPECT_EQ(of(Code::kAttributes),
            (Findings{{.code = Code::kAttributes, .inode = file_, .block = block}}));
  made_.put<std::uint32_t>(file_, kAcl, static_cast<std::uint32_t>(block));
  const std::uint64_t at = made_.layout->bytes_of(block).offset;
  made_.put(at, std::array<std::uint32_t, 9>{0xEA020000, 3, 1});
  EXPECT_EQ(of(Code::kAttributeCount),
            (Findings{{.code = Code::kAttributeCount, .block = block, .expected = 1, .found = 3}}));
}

TEST_F(InodeScanTest, WhoSaysThatItIsAnIndexIsLookedAt) {
  made_.put<std::uint32_t>(file_, kFlags, EXT2_INDEX_FL);
  EXPECT_EQ(of(Code::kInodeIndex), (Findings{{.code = Code::kInodeIndex, .inode = file_}}));
}

// Whatever they claim together, no more than about three times what there is is followed.
TEST_F(InodeScanTest, ManyThatClaimTheSameAreNotFollowedForEver) {
  const std::vector<std::byte> inode = made_.inode(file_);
  std::array<std::byte, 60> blocks;
  std::ranges::copy(std::span(inode).subspan(kFirst, 60), blocks.begin());
  for (InodeNumber i = 20; i < 500; ++i) made_.put(i, kFirst, blocks);
  Findings found = of(Code::kInodeMap);
  EXPECT_GT(found.size(), 300u);
  EXPECT_TRUE(std::ranges::all_of(found, [](const Finding& each) {
    return each.found == static_cast<std::uint64_t>(BlockMap::Fault::What::kTooMany);
  }));
}

}  // namespace
}  // namespace mariner::ifsck
