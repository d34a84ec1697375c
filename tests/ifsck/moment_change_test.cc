#include "ifsck/moment_change.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class MomentChangeTest : public ::testing::TestWithParam<const char*> {
 protected:
  MomentChangeTest() { (void)then_.census(&known_); }
  MomentChange find() {
    return MomentChange::find(*then_.context, *now_.context, known_, now_.changed(), {}).value();
  }

  MadeVolume made_{GetParam()};
  MadeMoment then_{*made_.past};
  MadeMoment now_{*made_.past};
  Baseline known_;
};

TEST_P(MomentChangeTest, OfAnInodeTableTheInodesThatDiffer) {
  const InodeNumber file = made_.find("a/large");
  now_.put<std::uint16_t>(now_.layout->inode_place(file).offset + 26, 7);
  const MomentChange change = find();
  ASSERT_EQ(change.inodes.size(), 1u);
  EXPECT_EQ(change.inodes.begin()->first, file);
  EXPECT_EQ(change.inodes.at(file)->then.links, 2u);
  EXPECT_EQ(change.inodes.at(file)->now.links, 7u);
  EXPECT_TRUE(change.groups.empty());
}

TEST_P(MomentChangeTest, OfADirectoryItsOwner) {
  const InodeNumber many = made_.find("many");
  const auto owned =
      std::ranges::find_if(known_.owners, [&](const auto& each) { return each.second == many; });
  ASSERT_NE(owned, known_.owners.end());
  now_.flip(now_.layout->bytes_of(owned->first).offset + 100);
  const MomentChange change = find();
  EXPECT_TRUE(change.inodes.contains(many));
  EXPECT_TRUE(change.dirty.contains(owned->first));
}

TEST_P(MomentChangeTest, OfBitmapsAndDescriptorsTheirGroups) {
  const FsBlock bitmap = ext2fs_block_bitmap_loc(now_.volume->fs(), 1);
  now_.flip(now_.layout->bytes_of(bitmap).offset + 1);
  EXPECT_TRUE(find().groups.contains(1));
}

INSTANTIATE_TEST_SUITE_P(Kinds, MomentChangeTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 1024 -O ^has_journal"));

TEST(MomentChange, AnotherFileSystemIsNotCompared) {
  MadeVolume one("-t ext2 -b 1024");
  MadeVolume other("-t ext2 -b 4096");
  MadeMoment then(*one.past);
  MadeMoment now(*other.past);
  Baseline known;
  (void)then.census(&known);
  const auto change = MomentChange::find(*then.context, *now.context, known, {}, {});
  ASSERT_FALSE(change.has_value());
  EXPECT_EQ(change.error().code, ErrorCode::kInvalidArgument);
}

TEST(MomentChange, ASuperblockThatChangesWhatIsRightIsNotCompared) {
  MadeVolume made("-t ext2 -b 1024");
  MadeMoment then(*made.past);
  Baseline known;
  (void)then.census(&known);
  for (const auto& [offset, value, comparable] :
       {std::tuple{84u, 47u, false},               // the first inode that is not reserved
        std::tuple{96u, 0x6u, true},               // needs recovery
        std::tuple{96u, 0x42u, false},             // extents
        std::tuple{100u, 0x1u, true},              // no large files
        std::tuple{44u, 1'790'000'000u, true}}) {  // mounted
    MadeMoment now(*made.past);
    now.put<std::uint32_t>(1024 + offset, value);
    now.open();
    const auto change = MomentChange::find(*then.context, *now.context, known, now.changed(), {});
    EXPECT_EQ(change.has_value(), comparable) << offset;
  }
}

TEST(MomentChange, InodesThatWereNeverUsedHaveNoBytes) {
  MadeVolume made("-t ext4 -b 1024 -O ^has_journal");
  MadeMoment now(*made.past);
  EXPECT_EQ(read_inode(*now.context, EXT2_ROOT_INO).value().size(), now.layout->inode_bytes());
  EXPECT_TRUE(read_inode(*now.context, now.layout->inodes()).value().empty());
}

}  // namespace
}  // namespace mariner::ifsck
