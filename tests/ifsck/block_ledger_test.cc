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
