#include "index/btree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/index/tree_rig.h"

namespace mariner::test {
namespace {

using index::BTree;
using index::IndexKey;
using index::KeyRange;

constexpr KeyRange kAll{{}, IndexKey::max()};

TEST(BTree, AnEmptyOneHasNothing) {
  TreeRig rig(TreeRig::small_options(1));
  EXPECT_EQ(rig.compare(), "");
  EXPECT_EQ(rig.compare_last(kAll), "");
  EXPECT_TRUE(rig.check().empty());
}

TEST(BTree, FindsWhatIsPendingAndWhatIsCommitted) {
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

TEST(BTree, TheLastOfARunIsFoundInTheQueueAlone) {
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

TEST(BTree, TheCheckerNamesTheKeysThatAreLost) {
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

// Random operations against a map, with commits, orderly restarts and power cuts in between.
class BTreeModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(BTreeModel, AgreesWithAMap) {
  const std::uint64_t seed = GetParam();
  std::mt19937_64 random(seed);
  TreeRig::Options options = TreeRig::small_options(seed);
  options.ascends_within_high = random() % 2 == 0;
  if (random() % 3 == 0) options.store.cache_bytes = 0;
  if (random() % 3 == 0) options.store.replay_max = 200;
  options.store.commit_at = random() % 2 == 0 ? 0.8 : 0.05;
  TreeRig rig(options);
  const std::uint64_t keys = 1 + random() % 3'000;
  std::uint64_t version = 0;
  for (int round = 0; round < 12; ++round) {
    const std::uint64_t operations = random() % 1'500;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const std::uint64_t high = random() % keys;
      switch (random() % 8) {
        case 0:
          if (!rig.model().empty()) {
            auto victim = rig.model().lower_bound({high, 0});
            if (victim == rig.model().end()) victim = rig.model().begin();
            // Of a run the last may go only if the lookups do not rely on the queue.
            if (!options.ascends_within_high) rig.erase(IndexKey(victim->first));
          }
          break;
        case 1: rig.turn(random() % 4); break;
        case 2:
          EXPECT_EQ(rig.compare_last({{high, 0}, {high, random() % (version + 2)}}), "");
          break;
        default: rig.insert({high, ++version}, random()); break;
      }
      if (!rig.store().has_room()) rig.settle();
    }
    const auto action = random() % 5;
    SCOPED_TRACE("action " + std::to_string(action));
    switch (action) {
      case 0: ASSERT_TRUE(rig.commit_all()); break;
      case 1: rig.restart(); break;
      case 2: rig.crash(); break;
      case 3:
        // In the middle of a write.
        rig.disk().cut_power_after(random() % 30);
        static_cast<void>(rig.store());
        rig.store().commit_all([](const Result<void>&) {});
        rig.turn(200);
        rig.crash();
        break;
      default: break;
    }
    ASSERT_EQ(rig.compare(), "") << "round " << round;
  }
  EXPECT_TRUE(rig.check().empty());
  EXPECT_EQ(rig.store().statistics().damaged, 0u);
}

// What disks do to an index, besides losing power: nothing that is answered is wrong, what is
// damaged is found, and made again from the log.

// Compares; what is found damaged is made again, and it is compared once more.
std::string compare_and_repair(TreeRig& rig, std::size_t& repaired) {
  for (int tries = 0; tries < 50; ++tries) {
    std::string difference = rig.compare();
    if (difference.empty()) return "";
    const std::size_t now = rig.repair();
    if (now == 0) return difference;
    repaired += now;
  }
  return "it is damaged again and again";
}

class DamagedBTree : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DamagedBTree, AnswersRightOrNotAtAllAndIsMadeAgain) {
  const std::uint64_t seed = GetParam();
  std::mt19937_64 random(seed);
  TreeRig::Options options = TreeRig::small_options(seed);
  if (random() % 2 == 0) options.store.cache_bytes = 0;
  options.store.commit_at = random() % 2 == 0 ? 0.8 : 0.05;
  TreeRig rig(options);
  std::size_t repaired = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = random() % 800; i > 0; --i) {
      const std::uint64_t high = random() % 2'000;
      if (random() % 8 == 0 && !rig.model().empty()) {
        rig.erase(IndexKey(rig.model().begin()->first));
      } else {
        rig.insert({high, random() % 3}, random());
      }
      if (random() % 50 == 0) rig.turn(3);
    }
    switch (random() % 5) {
      case 0: rig.disk().drop_next_write(); break;
      case 1:  // among the blocks
        rig.disk().misdirect_next_write(rig.superblock().offset_of(
            {static_cast<std::uint32_t>(random() % (rig.store().allocated_blocks() + 1))},
            random() % 2));
        break;
      case 2:
        rig.disk().fail_writes(1 + random() % 3, static_cast<FaultyDisk::Remains>(random() % 3));
        break;
      default: {
        const index::BlockAddress victim{
            static_cast<std::uint32_t>(random() % (rig.store().allocated_blocks() + 1))};
        rig.disk().flip_bit(
            rig.superblock().offset_of(victim, random() % 2) + random() % options.block_bytes,
            static_cast<unsigned>(random() % 8));
        break;
      }
    }
    static_cast<void>(rig.commit_all());
    ASSERT_EQ(compare_and_repair(rig, repaired), "") << "round " << round;
    // What was made again is there after a crash, too.
    if (random() % 3 == 0) {
      rig.crash();
      ASSERT_EQ(compare_and_repair(rig, repaired), "") << "round " << round << ", after a crash";
    }
  }
  RecordProperty("repaired", static_cast<int>(repaired));
}

INSTANTIATE_TEST_SUITE_P(Seed, DamagedBTree, ::testing::Range<std::uint64_t>(1, 101));

INSTANTIATE_TEST_SUITE_P(Seed, BTreeModel, ::testing::Range<std::uint64_t>(1, 201));

}  // namespace
}  // namespace mariner::test
