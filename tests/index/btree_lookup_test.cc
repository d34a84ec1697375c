#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "index/btree.h"
#include "tests/index/tree_rig.h"

namespace mariner::test {
namespace {

using index::BTree;
using index::IndexKey;
using index::KeyRange;

constexpr KeyRange kAll{{}, IndexKey::max()};

TEST(BTreeLookup, AnEmptyOneHasNothing) {
  TreeRig rig(TreeRig::small_options(1));
  EXPECT_EQ(rig.compare(), "");
  EXPECT_EQ(rig.compare_last(kAll), "");
  EXPECT_TRUE(rig.check().empty());
}

TEST(BTreeLookup, FindsWhatIsPendingAndWhatIsCommitted) {
  TreeRig rig(TreeRig::small_options(1));
  rig.insert({5, 1}, 51);
  rig.insert({5, 3}, 53);
  EXPECT_EQ(rig.compare(), "");
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.store().queued_bytes(), 0u);
  EXPECT_EQ(rig.compare(), "");
  rig.insert({5, 2}, 52);
  rig.insert({5, 3}, 530);
  rig.erase({5, 1});
  EXPECT_EQ(rig.compare(), "");
  EXPECT_EQ(rig.compare_last({{5, 0}, {5, 2}}), "");
  EXPECT_EQ(rig.compare_last({{5, 0}, {5, 1}}), "");
}

TEST(BTreeLookup, TheLastOfARunIsFoundInTheQueueAlone) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.ascends_within_high = true;
  options.store.cache_bytes = 0;
  TreeRig rig(options);
  for (std::uint64_t run = 0; run < 500; ++run) rig.insert({run, 1}, run);
  ASSERT_TRUE(rig.commit_all());
  rig.insert({77, 2}, 772);
  const std::uint64_t reads = rig.store().statistics().query_reads;
  EXPECT_EQ(rig.compare_last({{77, 0}, {77, 9}}), "");
  EXPECT_EQ(rig.store().statistics().query_reads, reads);
  EXPECT_EQ(rig.compare_last({{77, 0}, {77, 1}}), "");
  EXPECT_EQ(rig.compare_last({{78, 0}, {78, 9}}), "");
  EXPECT_EQ(rig.store().statistics().query_reads, reads + 2);
}

TEST(BTreeLookup, TheLastOfAllIsFoundWithOneRead) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.store.cache_bytes = 0;
  TreeRig rig(options);
  for (std::uint64_t i = 0; i < 5'000; ++i) rig.insert({i, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  ASSERT_GT(rig.tree().leaves(), 10u);
  rig.restart();
  EXPECT_EQ(rig.compare_each({kAll}), "");
  EXPECT_EQ(rig.store().statistics().query_reads, 1u);
}

TEST(BTreeLookup, AWalkOverManyRangesLooksAtTheirLeavesAlone) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.store.cache_bytes = 0;
  TreeRig rig(options);
  for (std::uint64_t i = 0; i < 20'000; ++i) rig.insert({i, 5}, i);
  ASSERT_TRUE(rig.commit_all());
  rig.restart();
  ASSERT_GT(rig.tree().leaves(), 100u);
  rig.insert({7'000, 1}, 1);
  rig.erase({15'000, 5});
  // Two in one leaf, one whose end is in the next, and one without any.
  const std::vector<KeyRange> sparse{{{100, 0}, {100, 9}},
                                     {{102, 0}, {103, 9}},
                                     {{7'000, 0}, {7'000, 9}},
                                     {{15'000, 0}, {15'000, 9}},
                                     {{19'990, 6}, {19'991, 4}}};
  const std::uint64_t before = rig.store().statistics().query_reads;
  std::vector<IndexKey> shown;
  ASSERT_TRUE(rig.consult([&](index::BlockReader& reader) {
    shown.clear();
    rig.tree().walk_each(reader, sparse, [&](IndexKey key, BTree::Value) { shown.push_back(key); });
  }));
  EXPECT_EQ(shown, (std::vector<IndexKey>{{100, 5}, {102, 5}, {103, 5}, {7'000, 1}, {7'000, 5}}));
  EXPECT_LE(rig.store().statistics().query_reads - before, 2 * sparse.size());
  EXPECT_EQ(rig.compare_walk(sparse), "");
  EXPECT_EQ(rig.compare_walk(
                {{{50, 0}, {9'000, 9}}, {{9'001, 0}, {9'001, 9}}, {{9'300, 0}, {18'000, 0}}}),
            "");
  EXPECT_EQ(rig.compare_walk({}), "");
}

// Turns that a walk over `range` takes from its begin.
std::size_t turns_of_scan(TreeRig& rig, KeyRange range, std::size_t most = SIZE_MAX) {
  std::size_t shown = 0;
  bool done = false;
  rig.tree().scan(
      range, BTree::Direction::kAscending, [&](IndexKey, BTree::Value) { return ++shown < most; },
      [&](const Result<void>& r) { done = r.has_value(); });
  std::size_t turns = 0;
  for (; !done; ++turns) {
    if (rig.executor().turn() == 0) {
      ADD_FAILURE() << "the walk does not end";
      break;
    }
  }
  return turns;
}

TEST(BTreeLookup, AWalkOverMuchReadsManyLeavesAtATime) {
  TreeRig::Options options = TreeRig::small_options(1);
  options.store.memory_bytes = std::size_t{8} << 20;
  options.store.cache_bytes = std::size_t{2} << 20;
  TreeRig rig(options);
  for (std::uint64_t i = 0; i < 50'000; ++i) rig.insert({i, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  rig.restart();
  const std::size_t leaves = rig.tree().leaves();
  ASSERT_GT(leaves, 200u);
  rig.disk().hold();
  bool done = false;
  std::size_t reads = 0;
  std::size_t rounds = 0;
  rig.tree().scan(
      kAll, BTree::Direction::kAscending, [](IndexKey, BTree::Value) { return true; },
      [&](const Result<void>& r) { done = r.has_value(); });
  // All that is asked of the disk by then comes at once.
  for (; !done && rounds < leaves; ++rounds) {
    rig.disk().release();
    rig.turn(2);
    rig.disk().hold();
    rig.turn(2);
  }
  rig.disk().release();
  reads = rig.store().statistics().query_reads;
  EXPECT_TRUE(done);
  EXPECT_LT(rounds, leaves / 8);
  EXPECT_EQ(reads, leaves) << "each is read once";
  rig.settle();
}

TEST(BTreeLookup, AWalkThatEndsSoonReadsLittleAhead) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 5'000; ++i) rig.insert({i, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  rig.restart();
  turns_of_scan(rig, kAll, 10);
  EXPECT_EQ(rig.store().statistics().query_reads, 1u);
  rig.settle();
}

TEST(BTreeLookup, AWalkOverMuchInMemoryLetsOthersHaveTheirTurns) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 10'000; ++i) rig.insert({i, 0}, i);
  const std::size_t leaves = rig.tree().leaves();
  ASSERT_GT(leaves, 40u);
  EXPECT_EQ(rig.store().statistics().query_reads, 0u);
  EXPECT_GE(turns_of_scan(rig, kAll), leaves / 16);
  EXPECT_EQ(turns_of_scan(rig, {{5'000, 0}, {5'010, 0}}), 0u) << "little is found at once";
  rig.settle();
}

TEST(BTreeLookup, TheCheckerNamesTheKeysThatAreLost) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 4'000; ++i) rig.insert({i * 13 % 4'000, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  ASSERT_TRUE(rig.check().empty());
  rig.restart();  // nothing in memory
  // Any written block: both of its places, so that it is the one that holds.
  const index::BlockAddress victim{3};
  for (const unsigned place : {0u, 1u}) {
    rig.disk().flip_bit(rig.superblock().offset_of(victim, place) + 200, 3);
  }
  const auto damaged = rig.check();
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].second.code, ErrorCode::kCorrupt);
  std::size_t lost = 0;
  for (const auto& [key, value] : rig.model()) {
    const bool in = key >= damaged[0].first.low && key <= damaged[0].first.high;
    const auto found = rig.find_last({key, key});
    EXPECT_EQ(found.has_value(), !in) << key.high;
    lost += in ? 1 : 0;
  }
  EXPECT_GT(lost, 0u);
}

TEST(BTreeLookup, ScansARangeBothWaysAndEndsWhenItIsTold) {
  TreeRig rig(TreeRig::small_options(1));
  for (std::uint64_t i = 0; i < 3'000; ++i) rig.insert({i * 7 % 3'000, 0}, i);
  ASSERT_TRUE(rig.commit_all());
  for (std::uint64_t i = 1'000; i < 1'100; ++i) rig.insert({i, 1}, i);
  const KeyRange range{{990, 0}, {1'200, 0}};
  for (const auto direction : {BTree::Direction::kAscending, BTree::Direction::kDescending}) {
    const auto found = rig.scan(range, direction);
    ASSERT_TRUE(found);
    std::vector<std::pair<IndexKey, std::uint64_t>> expected(rig.model().lower_bound(range.low),
                                                             rig.model().upper_bound(range.high));
    if (direction == BTree::Direction::kDescending) std::ranges::reverse(expected);
    EXPECT_EQ(*found, expected);
  }
  std::size_t shown = 0;
  bool done = false;
  rig.tree().scan(
      kAll, BTree::Direction::kAscending, [&](IndexKey, BTree::Value) { return ++shown < 10; },
      [&](const Result<void>& r) { done = r.has_value(); });
  rig.settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(shown, 10u);
}

}  // namespace
}  // namespace mariner::test
