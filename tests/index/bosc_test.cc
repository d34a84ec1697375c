#include "index/bosc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/index/bosc_rig.h"

namespace mariner::test {
namespace {

using index::BlockAddress;
using index::BlockView;
using index::Bosc;
using index::FunctionId;
using index::Modification;

TEST(Bosc, ModificationsAreQueuedWithoutReadingTheirBlock) {
  const auto rig = written_rig();
  for (std::uint32_t i = 0; i < 40; ++i) rig->add(i, 2, i);
  rig->turn(10);
  EXPECT_EQ(rig->store->statistics().reads, 0u);
  EXPECT_EQ(rig->compare(), "");
}

TEST(Bosc, WhoModifiesWaitsForRoomAtTheBound) {
  const auto rig = written_rig();
  rig->disk->hold();
  std::uint32_t added = 0;
  for (; rig->store->has_room(); ++added) rig->add(added % 40, 1);
  EXPECT_GT(added, 10'000u);
  EXPECT_LE(rig->store->memory_bytes(), rig->options.store.memory_bytes);
  int told = 0;
  rig->store->when_room([&] { ++told; });
  rig->store->when_room([&] { ++told; });
  rig->turn(20);
  EXPECT_EQ(told, 0);
  rig->disk->release();
  rig->turn(20);
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(rig->store->has_room());
  EXPECT_EQ(rig->compare(), "");
}

TEST(Bosc, RoomThatIsThereIsToldInALaterTurn) {
  BoscRig rig;
  bool told = false;
  rig.store->when_room([&] { told = true; });
  EXPECT_FALSE(told);
  rig.turn(1);
  EXPECT_TRUE(told);
}

TEST(Bosc, DivideSendsEachModificationToItsBlockInOrder) {
  BoscRig rig;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto change = CounterFunction::change(i, 100 + i);
    ASSERT_TRUE(rig.store->modify({3}, change, i + 1));
  }
  rig.store->divide({3},
                    [](Modification m) { return BlockAddress{m[0] < std::byte{4} ? 3u : 20u}; });
  EXPECT_EQ(rig.store->queued({3}), 4u);
  EXPECT_EQ(rig.store->queued({20}), 6u);
  std::string order;
  rig.store->query(
      {20},
      [&](const BlockView& view) {
        view.pending.for_each(
            [&](Modification m) { order += std::to_string(static_cast<int>(m[0])) + " "; });
        return true;
      },
      [](const Result<bool>&) {});
  EXPECT_EQ(order, "4 5 6 7 8 9 ");
  EXPECT_EQ((*rig.read(20))[9], 109u);
  EXPECT_EQ((*rig.read(3))[9], 0u);
}

// What is divided is older than what the other block has: the frontier stays below it.
TEST(Bosc, WhatWasDividedIsReplayedWhenItsNewBlockCouldNotBeWritten) {
  BoscRig rig;
  ASSERT_TRUE(rig.store->modify({0}, CounterFunction::change(1, 1), 1));
  ASSERT_TRUE(rig.store->modify({39}, CounterFunction::change(1, 1), 5));
  rig.store->divide({0}, [](Modification) { return BlockAddress{39}; });
  rig.store->set_used_through(5);
  rig.disk->fail_writes(1, FaultyDisk::Remains::kNothing);
  EXPECT_FALSE(rig.commit_all());
  EXPECT_EQ(rig.store->frontier(), 0u);
}

TEST(Bosc, AFreedBlockIsUsedAgainOnlyAfterTheNextCheckpoint) {
  const auto rig = written_rig();
  rig->add(4, 0);
  rig->store->free({4});
  EXPECT_FALSE(rig->store->belongs_to({4}, kCounters));
  EXPECT_EQ(rig->store->allocated_blocks(), 39u);
  EXPECT_EQ(rig->store->allocate(kCounters, 0)->value, 40u);
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->store->allocate(kCounters, 9)->value, 4u);
  EXPECT_EQ(rig->store->tag({4}), 9u);
  EXPECT_FALSE(rig->store->on_disk({4})) << "nothing of before is in it";
  EXPECT_EQ((*rig->read(4))[0], 0u);
}

TEST(Bosc, HolesOfACheckpointCanBeAllocated) {
  const auto rig = written_rig();
  rig->store->free({4});
  rig->store->free({9});
  ASSERT_TRUE(rig->commit_all());
  rig->restart();
  EXPECT_EQ(rig->store->allocate(kCounters, 0)->value, 4u);
  EXPECT_EQ(rig->store->allocate(kCounters, 0)->value, 9u);
  EXPECT_EQ(rig->store->allocate(kCounters, 0)->value, 40u);
}

TEST(Bosc, AFullFileSaysSo) {
  BoscRig rig;
  std::uint32_t blocks = rig.options.blocks;
  for (; blocks < rig.superblock.blocks; ++blocks) {
    ASSERT_TRUE(rig.store->allocate(kCounters, 0).has_value());
  }
  const auto full = rig.store->allocate(kCounters, 0);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(full.error().message,
            "the index file is full: all its " + std::to_string(blocks) + " blocks are in use");
  // A commit that would need one more leaves its block as it is.
  rig.add(3, 1, 7);
  rig.add(3, CounterFunction::kDividing);
  EXPECT_FALSE(rig.commit_all());
  EXPECT_FALSE(rig.store->on_disk({3}));
  EXPECT_EQ(rig.errors, std::vector<std::string>{"3: " + full.error().message});
  EXPECT_EQ((*rig.read(3))[1], 7u);
  rig.store->free({30});
  EXPECT_FALSE(rig.commit_all()) << "free at its checkpoint";
  EXPECT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.function->added, std::vector<BlockAddress>{BlockAddress{30}});
}

TEST(Bosc, WhenFewBlocksAreLeftAllAreCommittedNowAndThen) {
  BoscRig::Options options;
  options.disk_bytes = 5'636'096;
  const auto rig = written_rig(options);
  ASSERT_EQ(rig->superblock.blocks, 48u);
  const auto committed = [&] { return rig->store->statistics().blocks_committed; };
  ASSERT_TRUE(rig->store->allocate(kCounters, 0));
  ASSERT_TRUE(rig->store->allocate(kCounters, 0));
  rig->executor.run_until_idle();
  EXPECT_EQ(committed(), 0u) << "seven of 48 were left";
  ASSERT_TRUE(rig->store->allocate(kCounters, 0));
  rig->executor.run_until_idle();
  EXPECT_EQ(committed(), 40u);
  EXPECT_EQ(rig->store->frontier(), 40u);
  ASSERT_TRUE(rig->store->allocate(kCounters, 0));
  rig->executor.run_until_idle();
  EXPECT_EQ(committed(), 40u) << "not again so soon";
  rig->executor.advance(std::chrono::seconds(60));
  rig->add(3, 1);
  ASSERT_TRUE(rig->store->allocate(kCounters, 0));
  rig->executor.run_until_idle();
  EXPECT_EQ(committed(), 80u);
  EXPECT_EQ(rig->store->frontier(), 41u);
  rig->crash();
  EXPECT_EQ(rig->replayed, 0u);
  EXPECT_EQ(rig->compare(), "");
}

TEST(Bosc, TheNumbersOfAFunctionNeverDecrease) {
  BoscRig rig;
  ASSERT_TRUE(rig.store->modify({0}, CounterFunction::change(1, 1), 5));
  EXPECT_TRUE(rig.store->modify({1}, CounterFunction::change(1, 1), 5));
  EXPECT_DEATH(rig.store->modify({0}, CounterFunction::change(1, 1), 4), "decrease");
}

TEST(Bosc, WhatABlockHasAlreadyIsNotTakenAgain) {
  BoscRig rig;
  ASSERT_TRUE(rig.store->modify({0}, CounterFunction::change(1, 1), 5));
  rig.store->set_used_through(5);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.store->local_frontier({0}), 5u);
  EXPECT_FALSE(rig.store->modify({0}, CounterFunction::change(1, 1), 5));
  EXPECT_TRUE(rig.store->modify({0}, CounterFunction::change(1, 1), 6));
  EXPECT_EQ((*rig.read(0))[1], 2u);
}

TEST(Bosc, ADamagedSuperblockIsCorrupt) {
  BoscRig rig;
  rig.close();
  rig.disk->flip_bit(20, 1);
  rig.disk->flip_bit(4096 + 20, 1);
  const auto opened = Bosc::open(rig.executor, *rig.disk, rig.options.store);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
}

// Random modifications and queries on a disk that answers in any order and sometimes fails, with
// restarts and power cuts in between.
TEST(Bosc, AFunctionThatIsRemovedGivesBackAllItsBlocks) {
  constexpr FunctionId kOthers{6};
  for (const std::size_t turns : {0u, 1u, 3u, 10u, 100u}) {
    BoscRig rig;
    const std::uint32_t kept = rig.store->allocated_blocks();
    CounterFunction others;
    rig.store->add_function(kOthers, others);
    // Each commit of them adds a block: also those that are under way when they are removed.
    for (std::uint32_t i = 0; i < 20; ++i) {
      const Result<BlockAddress> address = rig.store->allocate(kOthers, 0);
      ASSERT_TRUE(address);
      rig.store->modify(*address, CounterFunction::change(CounterFunction::kDividing, 0), 1);
    }
    rig.add(3, 1);
    rig.store->commit_all([](const Result<void>&) {});
    rig.turn(turns);
    bool removed = false;
    rig.store->remove_function(kOthers, [&] { removed = true; });
    rig.turn_until([&] { return removed; });
    EXPECT_EQ(rig.store->allocated_blocks(), kept) << "after " << turns << " turns";
    ASSERT_TRUE(rig.commit_all());
    EXPECT_EQ(rig.compare(), "");
    rig.crash();
    EXPECT_EQ(rig.store->allocated_blocks(), kept) << "after " << turns << " turns";
    EXPECT_EQ(rig.compare(), "");
  }
}

class BoscModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(BoscModel, AgreesWithTheCounters) {
  std::mt19937_64 random(GetParam());
  BoscRig::Options options;
  options.seed = GetParam();
  options.delay_max = std::chrono::microseconds(random() % 2 == 0 ? 0 : 500);
  options.store.commit_at = random() % 2 == 0 ? 0.8 : 0.01;
  options.store.cache_bytes = 4096 * (random() % 12);
  if (random() % 3 == 0) options.store.replay_max = 50;
  BoscRig rig(options);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = random() % 300; i > 0; --i) {
      const auto block = static_cast<std::uint32_t>(random() % 40);
      switch (random() % 8) {
        case 0: rig.turn(random() % 4); break;
        case 1: rig.executor.advance(std::chrono::microseconds(random() % 300)); break;
        case 2: ASSERT_EQ(*rig.read(block), rig.model[block]); break;
        default: rig.add(block, static_cast<std::uint32_t>(random() % kCountersPerBlock), random());
      }
    }
    switch (random() % 5) {
      case 0:
        rig.disk->fail_writes(0, FaultyDisk::Remains::kNothing);
        ASSERT_TRUE(rig.commit_all());
        break;
      case 1: rig.restart(); break;
      case 2: rig.crash(); break;
      case 3:
        rig.disk->cut_power_after(random() % 20);
        rig.store->commit_all([](const Result<void>&) {});
        rig.executor.advance(std::chrono::milliseconds(random() % 20));
        rig.crash();
        break;
      default:
        rig.disk->fail_writes(random() % 4, FaultyDisk::Remains::kSomeSectors);
        rig.store->commit_all([](const Result<void>&) {});
        break;
    }
    ASSERT_EQ(rig.compare(), "") << "round " << round;
  }
  EXPECT_EQ(rig.store->statistics().damaged, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seed, BoscModel, ::testing::Range<std::uint64_t>(1, 101));

}  // namespace
}  // namespace mariner::test
