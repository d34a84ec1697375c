#include "ifsck/ext_layout.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Kind = ExtLayout::Kind;

class ExtLayoutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ExtLayoutTest, KnowsWhatIsWhere) {
  MadeVolume made{GetParam()};
  const ExtLayout& layout = *made.layout;
  const ext2_filsys fs = made.volume->fs();
  for (GroupNumber group = 0; group < layout.groups(); ++group) {
    EXPECT_EQ(layout.place_of(ext2fs_block_bitmap_loc(fs, group)),
              (ExtLayout::Place{Kind::kBlockBitmap, group, 0}));
    EXPECT_EQ(layout.place_of(ext2fs_inode_bitmap_loc(fs, group)),
              (ExtLayout::Place{Kind::kInodeBitmap, group, 0}));
  }
  for (InodeNumber inode = 1; inode <= layout.inodes(); inode += 7) {
    const ByteRange place = layout.inode_place(inode);
    const auto at = layout.place_of(place.offset / layout.block_bytes());
    EXPECT_EQ(at.kind, Kind::kInodeTable);
    EXPECT_EQ(at.group, layout.group_of(inode));
    EXPECT_EQ(inode - at.first_inode, place.offset % layout.block_bytes() / layout.inode_bytes());
    ext2_inode expected{};
    ASSERT_EQ(ext2fs_read_inode(fs, inode, &expected), 0);
    EXPECT_EQ(std::memcmp(made.inode(inode).data(), &expected, sizeof expected), 0);
  }
  EXPECT_EQ(layout.place_of(fs->super->s_first_data_block).kind, Kind::kSuperblock);
  EXPECT_EQ(layout.place_of(layout.blocks() + 5).kind, Kind::kData);
}

TEST_P(ExtLayoutTest, BlocksOfTheVolumeAreBlocksOfTheFileSystem) {
  MadeVolume made{GetParam()};
  const ExtLayout& layout = *made.layout;
  const std::uint64_t each = kBlockBytes / layout.block_bytes();
  EXPECT_EQ(layout.within({{10}, {2}}), (std::pair<FsBlock, FsBlock>{10 * each, 12 * each}));
  EXPECT_EQ(layout.within({{1u << 30}, {2}}).first, layout.blocks());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExtLayoutTest, ::testing::ValuesIn(kKinds));

TEST(ExtLayout, NumbersThatNoFileSystemHasAreDamage) {
  MadeVolume made{"-t ext4 -b 1024"};
  const ext2_filsys fs = made.volume->fs();
  const auto refused = [&] {
    const auto layout = ExtLayout::of(*made.volume);
    return layout ? ErrorCode::kAborted : layout.error().code;
  };
  const FsBlock table = ext2fs_inode_table_loc(fs, 1);
  ext2fs_inode_table_loc_set(fs, 1, ext2fs_inode_table_loc(fs, 0));
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
  ext2fs_inode_table_loc_set(fs, 1, made.layout->blocks() - 1);
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
  ext2fs_inode_table_loc_set(fs, 1, table);
  EXPECT_EQ(refused(), ErrorCode::kAborted);
  ext2fs_blocks_count_set(fs->super, made.layout->blocks() * 2);
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
}

// What libext2fs takes, and bitmaps of one block have no room for.
TEST(ExtLayout, AGroupHasNoMoreThanItsBitmapsHaveRoomFor) {
  MadeVolume made{"-t ext2 -b 1024"};
  const ext2_filsys fs = made.volume->fs();
  const auto refused = [&] {
    const auto layout = ExtLayout::of(*made.volume);
    return layout ? ErrorCode::kAborted : layout.error().code;
  };
  const auto put_inodes = [&](std::uint32_t of_group, std::uint32_t table_blocks) {
    fs->super->s_inodes_per_group = of_group;
    fs->super->s_inodes_count = of_group * fs->group_desc_count;
    fs->inode_blocks_per_group = table_blocks;
  };
  const std::uint32_t inodes = fs->super->s_inodes_per_group;
  const std::uint32_t table = fs->inode_blocks_per_group;
  const auto each = static_cast<std::uint32_t>(EXT2_INODE_SIZE(fs->super));
  put_inodes(16384, 16384 * each / 1024);
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
  // As many bytes of a table, in 32 bits.
  put_inodes(inodes + static_cast<std::uint32_t>((std::uint64_t{1} << 32) / each), table);
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
  put_inodes(inodes, table);
  EXPECT_EQ(refused(), ErrorCode::kAborted);
  fs->super->s_blocks_per_group = fs->super->s_clusters_per_group = 16384;
  EXPECT_EQ(refused(), ErrorCode::kCorrupt);
}

// Whichever group and structure it is, with groups next to each other and without.
TEST(ExtLayout, NoPlaceIsTooFarAway) {
  for (const char* kind : {"-t ext4 -b 1024 -O 64bit", "-t ext4 -b 1024 -O 64bit,^flex_bg"}) {
    MadeVolume made{kind};
    const ext2_filsys fs = made.volume->fs();
    ASSERT_GT(made.layout->groups(), 2u);
    for (GroupNumber group = 0; group < made.layout->groups(); ++group) {
      for (const auto& [get, set] :
           {std::pair{&ext2fs_block_bitmap_loc, &ext2fs_block_bitmap_loc_set},
            {&ext2fs_inode_bitmap_loc, &ext2fs_inode_bitmap_loc_set},
            {&ext2fs_inode_table_loc, &ext2fs_inode_table_loc_set}}) {
        const FsBlock before = get(fs, group);
        for (const FsBlock bad : {~FsBlock{0}, ~FsBlock{0} - 1, FsBlock{0}, made.layout->blocks(),
                                  ~FsBlock{0} - fs->inode_blocks_per_group}) {
          set(fs, group, bad);
          const auto layout = ExtLayout::of(*made.volume);
          ASSERT_FALSE(layout.has_value()) << kind << ", group " << group << ": " << bad;
          EXPECT_EQ(layout.error().code, ErrorCode::kCorrupt);
        }
        set(fs, group, before);
      }
    }
    EXPECT_EQ(ExtLayout::of(*made.volume).value(), *made.layout);
  }
}

}  // namespace
}  // namespace mariner::ifsck
