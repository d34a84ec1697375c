#include "ifsck/recheck_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "ifsck/directory_block.h"
#include "ifsck/draft.h"
#include "ifsck/recheck.h"
#include "tests/ifsck/made_history.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class RecheckMemoryTest : public ::testing::TestWithParam<const char*> {
 protected:
  explicit RecheckMemoryTest(unsigned seed = 1) : history_(GetParam(), seed) {
    (void)then_.census(&known_);
    for (const auto& [block, owner] : known_.owners) owned_.push_back(block);
  }

  Recheck check(RecheckMemory* memory) {
    auto changed = history_.past->changed({}, now_.view.at()).value();
    for (const BlockRange& each : now_.changed()) changed.push_back(each);
    return Recheck::run(*then_.context, *now_.context, known_, changed,
                        {.findings_max = kAllFindings, .memory = memory})
        .value();
  }
  // What is found does not depend on what was found before.
  void expect_alike(const std::string& what) {
    Recheck with = check(&memory_);
    Recheck without = check(nullptr);
    std::ranges::sort(with.findings);
    std::ranges::sort(without.findings);
    EXPECT_EQ(with.findings, without.findings) << what;
    EXPECT_EQ(with.derived, without.derived) << what;
    Baseline one = known_;
    Baseline other = known_;
    with.next.apply(now_.view.at(), one);
    without.next.apply(now_.view.at(), other);
    EXPECT_TRUE(one == other) << what;
  }
  // Somewhere in an inode, in a block that has an owner, in a bitmap, or (seldom) in a descriptor.
  void damage() {
    const ExtLayout& layout = *now_.layout;
    const auto in_block = [&](FsBlock block, std::uint64_t bytes) {
      now_.flip(layout.bytes_of(block).offset + random_() % bytes,
                static_cast<unsigned>(random_() % 8));
    };
    switch (random_() % 8) {
      case 0: {
        const auto group = static_cast<GroupNumber>(random_() % layout.groups());
        return in_block(ext2fs_block_bitmap_loc(now_.volume->fs(), group), 200);
      }
      case 1: {
        const FsBlock first = ext2fs_descriptor_block_loc2(now_.volume->fs(),
                                                           layout.block_bytes() == 1024 ? 1 : 0, 0);
        // (Counts, flags and what was never used: where something stands is left.)
        return now_.flip(layout.bytes_of(first).offset + 12 + random_() % 18);
      }
      case 2:
      case 3:
      case 4:
        return now_.flip(layout.inode_place(static_cast<InodeNumber>(2 + random_() % 620)).offset +
                             random_() % 128,
                         static_cast<unsigned>(random_() % 8));
      default: return in_block(owned_[random_() % owned_.size()], layout.block_bytes());
    }
  }

  MadeHistory history_;
  MadeMoment then_{*history_.past};
  MadeMoment now_{*history_.past, SequenceNumber{history_.ends.back().value / 2}};
  Baseline known_;
  std::vector<FsBlock> owned_;
  RecheckMemory memory_;
  std::mt19937_64 random_{7};
};

TEST_P(RecheckMemoryTest, FindsWhatACheckWithoutItFinds) {
  expect_alike("at first");
  for (int round = 0; round < 25; ++round) {
    for (std::uint64_t i = random_() % 3; i < 3; ++i) damage();
    now_.open();
    expect_alike("round " + std::to_string(round));
  }
}

TEST_P(RecheckMemoryTest, WhatADraftHasTakenBackIsLookedAtAgain) {
  expect_alike("at first");
  for (int round = 0; round < 10; ++round) {
    {
      Draft draft(now_.view);
      for (int i = 0; i < 4; ++i) damage();
      now_.open();
      expect_alike("draft " + std::to_string(round));
      if (round % 3 == 0) draft.keep();
    }
    now_.open();
    expect_alike("behind draft " + std::to_string(round));
  }
}

// What an inode's check looks at is not its own blocks alone: how an index is made stands in the
// directory's first block.
TEST_P(RecheckMemoryTest, AnIndexIsLookedAtWhenItsFirstBlockWasWrittenTo) {
  ext2_ino_t many = 0;
  ASSERT_EQ(ext2fs_namei(now_.volume->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, "many", &many), 0);
  std::vector<std::byte> bytes(now_.layout->inode_bytes());
  ASSERT_TRUE(now_.view.read(now_.layout->inode_place(many), bytes));
  const auto checked = check_inode(*now_.context, many, bytes, true).value();
  ASSERT_TRUE(checked.indexed);
  // (Of an inode that has changed before: it is in the memory.)
  now_.put<std::uint32_t>(now_.layout->inode_place(many).offset + 8, 5);
  expect_alike("at first");
  constexpr std::uint64_t kBytesOfHeadAt = 29;
  for (int i = 0; i < 2; ++i) {
    now_.flip(now_.layout->bytes_of(checked.map.runs.front().physical).offset + kBytesOfHeadAt);
    expect_alike("flip " + std::to_string(i));
  }
}

// Beyond so many, what is wrong with a directory is told each time that it is read.
TEST_P(RecheckMemoryTest, ADirectoryWithVeryMuchWrongIsReadAgain) {
  ext2_ino_t many = 0;
  ASSERT_EQ(ext2fs_namei(now_.volume->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, "many", &many), 0);
  std::vector<std::byte> bytes(now_.layout->inode_bytes());
  ASSERT_TRUE(now_.view.read(now_.layout->inode_place(many), bytes));
  const auto checked = check_inode(*now_.context, many, bytes, true).value();
  // All its names begin with the same letter, which becomes a slash.
  for (const BlockMap::Run& run : checked.map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const FsBlock block = run.physical + i;
      const auto before = now_.context->read_block(block).value();
      for_each_entry(before, [&](const DirectoryEntry& entry) {
        if (entry.name.starts_with("a file")) {
          now_.put<char>(now_.layout->bytes_of(block).offset + entry.offset + 8, '/');
        }
      });
    }
  }
  for (int i = 0; i < 3; ++i) expect_alike("look " + std::to_string(i));
  const std::vector<Finding> found = check(&memory_).findings;
  EXPECT_GT(std::ranges::count(found, Finding::Code::kEntryName, &Finding::code), 100);
}

TEST_P(RecheckMemoryTest, WhatWasNotWrittenToIsNotLookedAtAgain) {
  (void)check(&memory_);
  memory_.begin(*now_.context);
  ASSERT_FALSE(memory_.empty());
  const auto change =
      MomentChange::find(*then_.context, *now_.context, known_,
                         history_.past->changed({}, now_.view.at()).value(), {.memory = &memory_});
  std::size_t same = 0;
  for (const auto& [number, inode] : change->inodes) {
    same += inode == memory_.inodes().at(number) ? 1 : 0;
  }
  // (All but those that the file system has for itself.)
  EXPECT_GE(same + 11, change->inodes.size());
  EXPECT_GT(same, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecheckMemoryTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
