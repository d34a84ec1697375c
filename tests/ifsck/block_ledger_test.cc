#include "ifsck/block_ledger.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class BlockLedgerTest : public ::testing::Test {
 protected:
  BlockLedgerTest() { (void)then_.census(&known_); }
  std::vector<Finding> check() {
    const MomentChange change =
        MomentChange::find(*then_.context, *now_.context, known_, now_.changed(), {}).value();
    next_ = {};
    std::vector<Finding> findings;
    (void)check_blocks(change, next_, [&](const Finding& each) {
      findings.push_back(each);
    }).value();
    return findings;
  }
  // Of a file's first block.
  [[nodiscard]] std::uint64_t pointer(const char* path) const {
    return now_.layout->inode_place(made_.find(path)).offset + 40;
  }

  MadeVolume made_{"-t ext2 -b 1024"};
  MadeMoment then_{*made_.past};
  MadeMoment now_{*made_.past};
  Baseline known_;
  BaselineChange next_;
};

TEST_F(BlockLedgerTest, NothingOfNothing) {
  EXPECT_EQ(check(), std::vector<Finding>{});
  EXPECT_TRUE(next_.blocks.empty() && next_.owned.empty() && next_.disowned.empty());
}

TEST_F(BlockLedgerTest, ABitThatIsNotWhatIsClaimed) {
  const GroupNumber group = now_.layout->groups() - 1;
  const FsBlock first = ext2fs_group_first_block2(now_.volume->fs(), group);
  const FsBlock free = now_.layout->blocks() - 2;
  const FsBlock bitmap = ext2fs_block_bitmap_loc(now_.volume->fs(), group);
  now_.flip(now_.layout->bytes_of(bitmap).offset + (free - first) / 8, (free - first) % 8);
  const std::vector<Finding> expected{
      {.code = Code::kBlockMarked, .block = free, .group = group, .expected = 0, .found = 1}};
  EXPECT_EQ(check(), expected);
  EXPECT_EQ(next_.wrong, expected);
  EXPECT_EQ(next_.groups[group], Baseline::Group{});
}

// A file has lost all of its blocks but those that are not told in the inode.
TEST_F(BlockLedgerTest, MoreThanThereIsRoomForIsNotLookedAt) {
  const InodeNumber file = made_.find("a/large");
  const std::uint64_t blocks = 12;
  for (std::uint64_t i = 0; i < blocks; ++i) now_.put<std::uint32_t>(pointer("a/large") + 4 * i, 0);
  const MomentChange change =
      MomentChange::find(*then_.context, *now_.context, known_, now_.changed(), {}).value();
  const BlockMap& before = change.inodes.at(file)->then.map;
  const std::uint64_t lost = before.blocks() - change.inodes.at(file)->now.map.blocks();
  ASSERT_GT(lost, 0u);
  const auto check = [&](std::size_t most) {
    BaselineChange next;
    return check_blocks(
        change, next, [](const Finding&) {}, most);
  };
  EXPECT_TRUE(check(lost).has_value());
  const auto done = check(lost - 1);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument);
  const auto claims = check_claims(
      change, BlockRanges({{0, now_.layout->blocks()}}), [](const Finding&) {}, lost - 1);
  ASSERT_FALSE(claims.has_value());
  EXPECT_EQ(claims.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(BlockLedgerTest, ABlockThatAnotherOneHas) {
  const InodeNumber file = made_.find("a/b/sparse");
  std::uint32_t other = 0;
  (void)now_.view
      .read({pointer("many/a file with a long name, number 6"), 4},
            std::as_writable_bytes(std::span(&other, 1)))
      .value();
  now_.put(pointer("a/b/sparse"), other);
  std::vector<Finding> found = check();
  ASSERT_FALSE(found.empty());
  const auto twice = std::ranges::find(found, Code::kClaimedTwice, &Finding::code);
  ASSERT_NE(twice, found.end());
  EXPECT_EQ(twice->inode, file);
  EXPECT_EQ(twice->block, other);
  // What it had before is nobody's.
  EXPECT_NE(std::ranges::find(found, Code::kBlockMarked, &Finding::code), found.end());
  EXPECT_EQ(next_.groups[now_.layout->group_of(file)].free_inodes, 0);
}

}  // namespace
}  // namespace mariner::ifsck
