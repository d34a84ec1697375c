#include "ifsck/mend_allocation.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

class MendAllocationTest : public ::testing::TestWithParam<const char*> {
 protected:
  void zero(FsBlock block) {
    const std::vector<std::byte> zeros(made_.layout->block_bytes());
    ASSERT_TRUE(made_.view->write(made_.layout->bytes_of(block), zeros).has_value());
  }
  // What an image has, with the overlay.
  std::vector<std::byte> now(FsBlock block) {
    std::vector<std::byte> bytes(made_.layout->block_bytes());
    EXPECT_TRUE(made_.view->read(made_.layout->bytes_of(block), bytes).has_value());
    return bytes;
  }
  MadeMending made_{GetParam()};
};

TEST_P(MendAllocationTest, BitmapsAreMadeOfWhatIsInUse) {
  const ext2_filsys fs = made_.volume->fs();
  const FsBlock blocks = ext2fs_block_bitmap_loc(fs, 0);
  const FsBlock inodes = ext2fs_inode_bitmap_loc(fs, 0);
  const auto before = std::pair{now(blocks), now(inodes)};
  zero(blocks);
  zero(inodes);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kBlockMarked, Done::kBitmapSet));
  EXPECT_EQ(std::pair(now(blocks), now(inodes)), before);
}

TEST_P(MendAllocationTest, CountsAreThose) {
  const ext2_filsys fs = made_.volume->fs();
  const FsBlock descriptors = fs->super->s_first_data_block + 1;
  const std::vector<std::byte> before = now(descriptors);
  made_.put<std::uint16_t>(made_.layout->bytes_of(descriptors).offset + 12, 1);
  made_.put<std::uint16_t>(made_.layout->bytes_of(descriptors).offset + 14, 2);
  made_.put<std::uint16_t>(made_.layout->bytes_of(descriptors).offset + 16, 3);
  made_.put<std::uint32_t>(1024 + 12, 4);
  made_.put<std::uint32_t>(1024 + 16, 5);
  (void)made_.mend();
  EXPECT_EQ(ext2fs_free_blocks_count(made_.again->fs()->super),
            ext2fs_free_blocks_count(fs->super));
  EXPECT_EQ(made_.again->fs()->super->s_free_inodes_count, fs->super->s_free_inodes_count);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MendAllocationTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 4096",
                                           "-t ext4 -b 1024 -O ^flex_bg,^metadata_csum,uninit_bg"));

// All inodes would seem to be none: the descriptor is not believed.
TEST(MendAllocation, ADescriptorWithAWrongChecksumLosesNoInodes) {
  MadeMending made{"-t ext4 -b 4096"};
  made.put<std::uint16_t>(made.layout->bytes_of(1).offset + 18,
                          EXT2_BG_INODE_UNINIT | EXT2_BG_BLOCK_UNINIT);
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kGroupChecksum, Done::kChecksumSet));
  EXPECT_EQ(made.find_again("a/b/c/linked"), made.find("a/large"));
}

// As a kernel without a journal leaves it that has written directories and inodes, and not yet what
// it says of how many were ever used.
TEST(MendAllocation, InodesWithNamesAreNotLostWhereTheyAreSaidToBeUnused) {
  for (const char* kind :
       {"-t ext4 -b 4096", "-t ext4 -b 1024 -O ^flex_bg,^metadata_csum,uninit_bg"}) {
    for (const bool all : {false, true}) {
      MadeMending made{kind};
      const ext2_filsys fs = made.volume->fs();
      const InodeNumber number = made.find("a/b/c/linked");
      const GroupNumber group = made.layout->group_of(number);
      const std::string before = MadeMending::content(*made.volume, number);
      if (all && group != 0) ext2fs_bg_flags_set(fs, group, EXT2_BG_INODE_UNINIT);
      ext2fs_bg_itable_unused_set(
          fs, group,
          made.layout->inodes_per_group() - (number - 1) % made.layout->inodes_per_group());
      ext2fs_group_desc_csum_set(fs, group);
      const std::size_t bytes = EXT2_DESC_SIZE(fs->super);
      const auto* const descriptor =
          reinterpret_cast<const std::byte*>(ext2fs_group_desc(fs, fs->group_desc, group));
      ASSERT_TRUE(made.view
                      ->write({made.layout->bytes_of(fs->super->s_first_data_block + 1).offset +
                                   group * bytes,
                               bytes},
                              std::span(descriptor, bytes))
                      .has_value());
      const Mended mended = made.mend();
      EXPECT_TRUE(MadeMending::has(mended, Code::kEntryInode, Done::kFieldSet));
      ASSERT_EQ(made.find_again("a/b/c/linked"), number) << kind;
      EXPECT_EQ(made.content(number), before);
    }
  }
}

}  // namespace
}  // namespace mariner::ifsck
