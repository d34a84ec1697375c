#include "index/btree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/index/tree_rig.h"
#include "tests/logging/log_testing.h"

namespace mariner::test {
namespace {

using index::BTree;
using index::IndexKey;
using index::KeyRange;

// FORMAT.md section 4.
TEST(BTree, GoldenBytesOfWhatItSaves) {
  TreeRig rig(TreeRig::small_options(1));
  const std::uint32_t capacity = rig.tree().shape().capacity();
  for (std::uint64_t i = 0; i < capacity; ++i) rig.insert({i, 0x11223344}, i);
  rig.insert({0x5152535455565758, 0x6162636465666768}, 0);
  ASSERT_TRUE(rig.commit_all());
  std::vector<std::byte> saved(rig.tree().saved_bytes());
  rig.tree().save(saved);
  EXPECT_EQ(capacity, 0xa6u);
  EXPECT_EQ(logging::test::hex(saved),
            "08000000 02000000 00000000 00000000\n"
            "00000000 00000000 00000000 a6000000\n"
            "58575655 54535251 68676665 64636261\n"
            "01000000 01000000");
}

TEST(BTree, AscendingKeysFillLeafAfterLeafWithoutReading) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    rig.insert({i, 0}, i);
    if (i % 512 == 0) rig.turn(1);
  }
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.compare(), "");
  const std::uint32_t capacity = rig.tree().shape().capacity();
  EXPECT_LE(rig.tree().leaves(), 20'000 / capacity + 20);
}

TEST(BTree, AQueueThatWouldNotFitIsDividedBeforeAnythingIsWritten) {
  TreeRig rig(TreeRig::small_options(1));
  std::mt19937_64 random(3);
  for (int i = 0; i < 3'000; ++i) rig.insert({random() % 100'000, 0}, random());
  EXPECT_GT(rig.tree().leaves(), 8u);
  EXPECT_EQ(rig.store().statistics().bytes_written, 0u);
  EXPECT_EQ(rig.compare(), "");
}

// What a checkpoint says of a leaf whose records were put into it in the cache.
TEST(BTree, KnowsItsRecordsAfterARestartWhateverWayTheyCame) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.store.cache_bytes = std::size_t{64} << 10;
  TreeRig rig(options);
  rig.insert({1, 0}, 1);
  ASSERT_TRUE(rig.commit_all());
  ASSERT_TRUE(rig.find_last({{0, 0}, {9, 0}}));  // now the leaf is in memory
  for (std::uint64_t i = 2; i < 7; ++i) rig.insert({i, 0}, i);
  EXPECT_EQ(rig.store().queued(index::BlockAddress{0}), 0u);
  ASSERT_TRUE(rig.commit_all());
  rig.restart();
  EXPECT_EQ(rig.tree().effective_count(), 6u);
  EXPECT_EQ(rig.compare(), "");
}

TEST(BTree, ALeafThatACommitEmptiesIsGivenBack) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 5'000; ++i) rig.insert({i * 7 % 5'000, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  const std::size_t leaves = rig.tree().leaves();
  for (std::uint64_t i = 1'000; i < 4'000; ++i) rig.erase({i, 0});
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.compare(), "");
  EXPECT_LT(rig.tree().leaves(), leaves * 6 / 10);
  EXPECT_EQ(rig.store().allocated_blocks(), rig.tree().leaves());
}

TEST(BTree, ARebuildThatACrashInterruptsIsNotTakenForDone) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 100; ++i) rig.insert({i, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  const auto range = rig.tree().begin_rebuild(index::BlockAddress{0});
  ASSERT_TRUE(range.has_value());
  for (std::uint64_t i = 0; i < 50; ++i) rig.tree().restore({i, 0}, TreeRig::value_of(i));
  static_cast<void>(rig.commit_all());  // the other half of the log is still being read
  EXPECT_EQ(rig.store().frontier(), 0u);
  rig.crash();
  EXPECT_EQ(rig.compare(), "");
}

TEST(BTree, ARebuildThatNeedsSeveralLeavesIsCommittedAtItsEndOnly) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 100; ++i) rig.insert({i * 1000, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  const auto range = rig.tree().begin_rebuild(index::BlockAddress{0});
  ASSERT_TRUE(range.has_value());
  for (std::uint64_t i = 0; i < 100; ++i) rig.tree().restore({i * 1000, 0}, TreeRig::value_of(i));
  for (std::uint64_t i = 0; i < 2'000; ++i) {  // what comes meanwhile
    rig.insert({i * 37 % 100'000, 1}, i);
    if (i % 100 == 0) static_cast<void>(rig.commit_all());
  }
  EXPECT_EQ(rig.store().frontier(), 0u);
  rig.tree().end_rebuild(*range);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_GT(rig.store().frontier(), 0u);
  EXPECT_EQ(rig.compare(), "");
  rig.crash();
  EXPECT_EQ(rig.compare(), "");
}

// Leaves of 166 ascending keys each, at the addresses from 0 on.
void fill_leaves(TreeRig& rig) {
  for (std::uint64_t i = 0; i < 1'000; ++i) rig.insert({i, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  ASSERT_EQ(rig.tree().leaves(), 7u);
}

TEST(BTree, WhatIsNeededNoMoreGoesBehindARebuildOfTheFirstLeaf) {
  TreeRig rig(TreeRig::small_options(1));
  fill_leaves(rig);
  const auto range = rig.tree().begin_rebuild(index::BlockAddress{0});
  ASSERT_TRUE(range.has_value());
  for (std::uint64_t i = 0; i < 166; ++i) {
    if (i == 80) rig.tree().drop_before({500, 0});
    rig.tree().restore({i, 0}, TreeRig::value_of(i));
  }
  rig.tree().end_rebuild(*range);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.compare(), "");
  rig.tree().drop_before({500, 0});
  EXPECT_EQ(rig.tree().leaves(), 4u);
}

TEST(BTree, ALeafIsMadeAgainAlsoIfTheOneBeforeItIsNeededNoMore) {
  TreeRig rig(TreeRig::small_options(1));
  fill_leaves(rig);
  const auto range = rig.tree().begin_rebuild(index::BlockAddress{1});
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->low, (IndexKey{166, 0}));
  rig.tree().drop_before({200, 0});
  for (std::uint64_t i = 166; i < 332; ++i) rig.tree().restore({i, 0}, TreeRig::value_of(i));
  rig.tree().end_rebuild(*range);
  EXPECT_TRUE(rig.commit_all()) << "nothing is held back any more";
  EXPECT_EQ(rig.store().frontier(), 1'000u);
}

TEST(BTree, ALeafThatIsMadeAgainDoesNotTakeThePlaceOfAnEmptyOne) {
  TreeRig rig(TreeRig::small_options(1));
  fill_leaves(rig);
  const auto range = rig.tree().begin_rebuild(index::BlockAddress{2});
  ASSERT_TRUE(range.has_value());
  const std::uint64_t behind = range->high.high + 1;
  for (std::uint64_t i = behind; i < behind + 166; ++i) rig.erase({i, 0});
  static_cast<void>(rig.commit_all());
  // One of them has keys that nobody knows yet.
  const std::vector<KeyRange> ranges{{{behind - 9, 0}, {behind - 9, 9}},
                                     {{behind + 9, 0}, {behind + 9, 9}}};
  const Result<void> looked = rig.consult([&](index::BlockReader& reader) {
    rig.tree().find_last_each(reader, ranges, [](std::size_t, IndexKey, index::BTree::Value) {});
  });
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, ErrorCode::kUnavailable);
  for (std::uint64_t i = range->low.high; i < behind; ++i) {
    rig.tree().restore({i, 0}, TreeRig::value_of(i));
  }
  rig.tree().end_rebuild(*range);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.compare_each(ranges), "");
  EXPECT_EQ(rig.compare(), "");
}

TEST(BTree, CommitThreadsApplyWhileTheOwnerGoesOn) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.store.commit_threads = 2;
  options.store.commit_at = 0.05;
  TreeRig rig(options);
  std::mt19937_64 random(7);
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    rig.insert({random() % 5'000, i}, i);
    if (i % 16 == 0) rig.turn(1);
    if (i % 500 == 0) {
      EXPECT_EQ(rig.compare_last({{i % 5'000, 0}, {i % 5'000, i}}), "");
    }
    while (!rig.store().has_room()) rig.turn(1);
  }
  EXPECT_GT(rig.store().statistics().runs, 0u);
  EXPECT_EQ(rig.compare(), "");
  rig.crash();
  EXPECT_EQ(rig.compare(), "");
}

}  // namespace
}  // namespace mariner::test
