#include "uvfs/lazy_mender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ifsck/ext_inode.h"
#include "tests/uvfs/made_writes.h"
#include "uvfs/moment_tree.h"

namespace mariner::uvfs {
namespace {

class LazyMenderTest : public ::testing::Test {
 protected:
  // That an inode is there comes after its name, as from a host without a journal.
  void SetUp() override {
    folder_ = made_.volume.find("/a");
    const auto large = made_.volume.find("/a/large");
    unused_ = made_.volume.layout->inodes() - 1;
    sound_ = made_.flush();
    torn_ = made_.put<std::uint32_t>(made_.place_of(folder_, "large"), unused_);
    gone_ = made_.put<std::uint16_t>(large, ifsck::InodeAt::kLinks, 0);
  }
  static bool lists(MomentTree& tree, ifsck::InodeNumber folder, const std::string& name) {
    const auto names = tree.names(folder).value();
    return std::ranges::find(*names, name, &MomentTree::Name::name) != names->end();
  }

  MadeWrites made_{"-t ext2 -b 4096"};
  ifsck::InodeNumber folder_ = 0;
  ifsck::InodeNumber unused_ = 0;
  SequenceNumber sound_;
  SequenceNumber torn_;
  SequenceNumber gone_;
};

TEST_F(LazyMenderTest, AMomentIsMendedWhenSomethingInItCannotBeRead) {
  auto past = made_.past();
  LazyMender mender(past);
  const auto tree = MomentTree::open(past, gone_, &mender).value();
  // Nothing was wrong so far.
  EXPECT_TRUE(lists(*tree, folder_, "large"));
  EXPECT_FALSE(mender.has_mended(gone_));
  EXPECT_EQ(tree->state(unused_).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(mender.has_mended(gone_));
  EXPECT_FALSE(lists(*tree, folder_, "large"));
  EXPECT_TRUE(lists(*tree, folder_, "b"));
  // Who opens it again finds the same.
  const auto again = MomentTree::open(past, gone_, &mender).value();
  EXPECT_FALSE(lists(*again, folder_, "large"));
  // Without one it is shown as it is.
  const auto as_it_is = MomentTree::open(past, gone_).value();
  EXPECT_EQ(as_it_is->state(unused_).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(lists(*as_it_is, folder_, "large"));
}

TEST_F(LazyMenderTest, WhatNobodyNamesIsNoReason) {
  auto past = made_.past();
  LazyMender mender(past);
  const auto tree = MomentTree::open(past, sound_, &mender).value();
  EXPECT_EQ(tree->state(unused_).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(mender.has_mended(sound_));
}

TEST_F(LazyMenderTest, DirectoriesThatAreNoneAreMended) {
  const auto place = made_.place_of(folder_, "large");
  const auto broken = made_.put<std::uint16_t>(place + 4, 3);  // the length of the entry
  auto past = made_.past();
  LazyMender mender(past);
  const auto tree = MomentTree::open(past, broken, &mender).value();
  EXPECT_TRUE(tree->names(folder_).has_value());
  EXPECT_TRUE(mender.has_mended(broken));
}

TEST_F(LazyMenderTest, WhatIsWellStaysAsItIs) {
  auto past = made_.past();
  LazyMender mender(past);
  ifsck::Overlay overlay;
  EXPECT_FALSE(mender.mend(sound_, overlay).value());
  EXPECT_EQ(overlay.size(), 0u);
  EXPECT_FALSE(mender.has_mended(sound_));
  // Again and again: more than states are kept for.
  for (int i = 0; i < 3 * LazyMender::kStatesMax; ++i) {
    ifsck::Overlay mended;
    EXPECT_TRUE(mender.mend(gone_, mended).value());
    EXPECT_GT(mended.size(), 0u);
  }
}

TEST_F(LazyMenderTest, WhatIsNoFileSystemIsLeftAlone) {
  const auto at =
      made_.put<std::uint16_t>(SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_magic), 0);
  auto past = made_.past();
  LazyMender mender(past);
  ifsck::Overlay overlay;
  EXPECT_FALSE(mender.mend(at, overlay).value());
}

}  // namespace
}  // namespace mariner::uvfs
