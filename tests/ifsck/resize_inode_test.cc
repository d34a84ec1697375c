#include "ifsck/resize_inode.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

class ResizeInodeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ResizeInodeTest, IsAsMke2fsMakesIt) {
  MadeMending made{GetParam()};
  const auto resize = ResizeInode::of({*made.volume, *made.layout});
  EXPECT_EQ(resize.has_value(), ext2fs_has_feature_resize_inode(made.volume->fs()->super) != 0);
  EXPECT_TRUE(!resize || resize->fits(made.map(EXT2_RESIZE_INO), made.layout->block_bytes()));
}

TEST_P(ResizeInodeTest, IsRestored) {
  MadeMending made{GetParam()};
  if (!ResizeInode::of({*made.volume, *made.layout})) return;
  const BlockMap before = made.map(EXT2_RESIZE_INO);
  made.put(EXT2_RESIZE_INO, 40, std::array<std::byte, 60>{});
  for (const BlockMap::Node& each : before.nodes) {
    made.put(made.layout->bytes_of(each.block).offset, std::array<std::byte, 100>{});
  }
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Finding::Code::kInodeMap, Repair::Done::kRestored));
  EXPECT_EQ(made.map(EXT2_RESIZE_INO).runs, before.runs);
}

TEST_P(ResizeInodeTest, IsRestoredFromNothing) {
  MadeMending made{GetParam()};
  if (!ResizeInode::of({*made.volume, *made.layout})) return;
  const BlockMap before = made.map(EXT2_RESIZE_INO);
  made.put(EXT2_RESIZE_INO, 0, std::array<std::byte, 128>{});
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Finding::Code::kInodeMap, Repair::Done::kRestored));
  EXPECT_EQ(made.map(EXT2_RESIZE_INO).runs, before.runs);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ResizeInodeTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
