#include "ifsck/map_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class MapWriterTest : public ::testing::TestWithParam<const char*> {
 protected:
  MadeVolume made_{GetParam()};
  const ExtContext context_{*made_.volume, *made_.layout};
  MendWork work_{context_, {.findings = {}, .cut_short = false, .directories = {}}};

  BlockMap map(InodeNumber number, InodeBytes bytes) {
    return map_blocks(*made_.volume, *made_.layout, number, bytes).value();
  }
};

TEST_P(MapWriterTest, WhatIsWrittenIsRead) {
  const InodeNumber number = made_.find("a/b/sparse");
  std::vector<std::byte> inode = made_.inode(number);
  const bool extents =
      (made_.volume->fs()->super->s_feature_incompat & EXT3_FEATURE_INCOMPAT_EXTENTS) != 0;
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::vector<BlockMap::Run> runs;
    std::uint64_t logical = random() % 20;
    FsBlock physical = 100;
    for (std::uint64_t k = random() % 400; k > 0; --k) {
      const std::uint64_t count = 1 + random() % 3;
      runs.push_back({logical, physical, count, extents && random() % 4 == 0});
      logical += count + 1 + random() % 50;
      physical += count + 1;
    }
    ASSERT_TRUE(write_map(work_, number, inode, runs, map(number, inode).nodes).has_value());
    const BlockMap now = map(number, inode);
    EXPECT_EQ(now.runs, runs);
    EXPECT_TRUE(now.faults.empty());
  }
}

TEST_P(MapWriterTest, TheSameIsNotWritten) {
  const InodeNumber number = made_.find("a/b/sparse");
  std::vector<std::byte> inode = made_.inode(number);
  const BlockMap before = map(number, inode);
  ASSERT_TRUE(write_map(work_, number, inode, before.runs, before.nodes).has_value());
  const BlockMap after = map(number, inode);
  EXPECT_EQ(after.runs, before.runs);
  EXPECT_LE(after.nodes.size(), before.nodes.size());
  if ((made_.volume->fs()->super->s_feature_incompat & EXT3_FEATURE_INCOMPAT_EXTENTS) == 0) {
    EXPECT_EQ(made_.overlay.size(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MapWriterTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
