#include "ifsck/baseline.h"

#include <gtest/gtest.h>

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

TEST(Baseline, NotesWhereBitmapsAndCountsAreWrong) {
  Baseline baseline;
  baseline.note({.code = Code::kBlockMarked, .block = 70, .group = 1});
  baseline.note({.code = Code::kInodeMarked, .inode = 12, .group = 2});
  baseline.note({.code = Code::kFreeBlocks, .group = 3});
  baseline.note({.code = Code::kFreeBlocks, .group = Finding::kAll});
  baseline.note({.code = Code::kAttributeCount, .block = 90});
  baseline.note({.code = Code::kLinks, .inode = 13});
  EXPECT_EQ(baseline.mismarked, std::unordered_set<FsBlock>{70});
  EXPECT_EQ(baseline.mismarked_inodes, std::unordered_set<InodeNumber>{12});
  EXPECT_EQ(baseline.doubtful, std::unordered_set<GroupNumber>{3});
  EXPECT_EQ(baseline.doubtful_attributes, std::unordered_set<FsBlock>{90});
}

TEST(Baseline, AChangeBringsItToTheNextMoment) {
  Baseline baseline{.at = SequenceNumber{5},
                    .owners = {{100, 12}, {101, 12}, {102, 13}},
                    .attributes = {{200, 2}, {201, 1}},
                    .groups = {{.free_blocks = 10, .free_inodes = 20, .directories = 2}},
                    .mismarked = {7, 8},
                    .mismarked_inodes = {30},
                    .doubtful = {0},
                    .doubtful_attributes = {200}};
  BaselineChange change;
  change.disowned = {100, 101};
  change.owned = {{101, 14}, {103, 14}};
  change.attributes = {{200, 1}, {201, 0}};
  change.groups[0] = {.free_blocks = -3, .free_inodes = 1, .directories = -1};
  change.blocks = {7, 9};
  change.inodes = {30};
  change.wrong = {{.code = Code::kBlockMarked, .block = 9}};
  change.apply(SequenceNumber{6}, baseline);
  const Baseline expected{.at = SequenceNumber{6},
                          .owners = {{101, 14}, {102, 13}, {103, 14}},
                          .attributes = {{200, 1}},
                          .groups = {{.free_blocks = 7, .free_inodes = 21, .directories = 1}},
                          .mismarked = {8, 9},
                          .mismarked_inodes = {},
                          .doubtful = {},
                          .doubtful_attributes = {}};
  EXPECT_TRUE(baseline == expected);
}

}  // namespace
}  // namespace mariner::ifsck
