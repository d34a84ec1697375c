// The commit sweep (bosc_sweep.cc): its runs, what they keep when something fails, and what queries
// see meanwhile.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "index/bosc.h"
#include "tests/index/bosc_rig.h"

namespace mariner::test {
namespace {

using index::BlockAddress;
using Remains = FaultyDisk::Remains;

// The runs of a commit of these blocks, in groups of 8.
std::string runs_of(const std::vector<std::uint32_t>& dirty, std::uint32_t run_blocks_max = 8) {
  BoscRig::Options options;
  options.store.run_blocks_max = run_blocks_max;
  const auto rig = written_rig(options);
  for (const std::uint32_t block : dirty) rig->add(block, 1);
  const std::size_t from = rig->disk->writes().size();
  CHECK(rig->commit_all());
  return rig->runs_since(from);
}

TEST(BoscSweep, NeighboursAreOneRunUpToItsBound) {
  EXPECT_EQ(runs_of({0, 1, 2, 3}, 4), "0-3 ");
  EXPECT_EQ(runs_of({1, 2, 3, 4, 5, 6}, 4), "1-4 5-6 ");
  EXPECT_EQ(runs_of({1, 2, 3}, 1), "1-1 2-2 3-3 ");
}

TEST(BoscSweep, ARunLiesWithinAGroup) { EXPECT_EQ(runs_of({6, 7, 8, 9}), "6-7 8-9 "); }

TEST(BoscSweep, ARunIsHalfDirtyAtLeastAndBeginsAndEndsWithADirtyBlock) {
  EXPECT_EQ(runs_of({0, 2}), "0-2 ") << "two of three";
  EXPECT_EQ(runs_of({0, 3}), "0-3 ") << "two of four";
  EXPECT_EQ(runs_of({0, 4}), "0-0 4-4 ");
  EXPECT_EQ(runs_of({8, 11, 13}), "8-13 ") << "three of six";
  EXPECT_EQ(runs_of({8, 11, 15}), "8-11 15-15 ");
}

TEST(BoscSweep, TheSweepGoesInTheOrderOfAddresses) {
  EXPECT_EQ(runs_of({33, 17, 25, 1, 9}), "1-1 9-9 17-17 25-25 33-33 ");
}

TEST(BoscSweep, RandomRunsKeepTheRules) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    BoscRig::Options options;
    options.store.run_blocks_max = 7;
    const auto rig = written_rig(options);
    std::set<std::uint32_t> dirty;
    for (std::uint64_t i = 1 + random() % 30; i > 0; --i) {
      dirty.insert(static_cast<std::uint32_t>(random() % 40));
    }
    for (const std::uint32_t block : dirty) rig->add(block, 1);
    const std::size_t from = rig->disk->writes().size();
    ASSERT_TRUE(rig->commit_all());
    std::set<std::uint32_t> written;
    std::uint64_t carried = 0;
    for (std::size_t i = from; i < rig->disk->writes().size(); ++i) {
      const ByteRange& write = rig->disk->writes()[i];
      const auto place = rig->place_of(write.offset);
      if (!place) continue;
      const auto blocks = static_cast<std::uint32_t>(write.length / 4096);
      const std::uint32_t last = place->block + blocks - 1;
      ASSERT_LE(blocks, 7u);
      ASSERT_EQ(place->block / 8, last / 8);
      ASSERT_TRUE(dirty.contains(place->block) && dirty.contains(last));
      std::uint32_t share = 0;
      for (std::uint32_t block = place->block; block <= last; ++block) {
        ASSERT_TRUE(written.insert(block).second);
        dirty.contains(block) ? ++share : ++carried;
      }
      ASSERT_GE(2 * share, blocks);
    }
    for (const std::uint32_t block : dirty) ASSERT_TRUE(written.contains(block));
    EXPECT_EQ(rig->store->statistics().blocks_committed, dirty.size());
    EXPECT_EQ(rig->store->statistics().blocks_carried, carried);
    rig->crash();
    ASSERT_EQ(rig->compare(), "");
  }
}

TEST(BoscSweep, CleanBlocksAreCarriedAsTheyAre) {
  const auto rig = written_rig();
  rig->add(0, 1);
  rig->add(2, 1);
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->store->statistics().blocks_carried, 1u);
  EXPECT_EQ(rig->store->statistics().reads, 1u) << "the whole run at once";
  EXPECT_EQ(rig->store->statistics().bytes_read, 3u * 4096);
  rig->restart();
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, BlocksThatWereNeverWrittenAreCommittedWithoutAReadAndNotCarried) {
  BoscRig rig;
  rig.add(0, 1);
  rig.add(2, 1);
  const std::size_t from = rig.disk->writes().size();
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.runs_since(from), "0-0 2-2 ");
  EXPECT_EQ(rig.store->statistics().reads, 0u);
  EXPECT_FALSE(rig.store->on_disk({1}));
}

// Whether no place was ever written that the newest durable checkpoint refers to, and no block
// twice between two; and how many checkpoints there were.
void check_places(const BoscRig& rig, std::size_t* checkpoints) {
  std::map<std::uint32_t, unsigned> holds;
  std::map<std::uint32_t, unsigned> since;
  *checkpoints = 0;
  for (const ByteRange& write : rig.disk->writes()) {
    if (write.offset < 2 * kBlockBytes) {
      for (const auto& [block, place] : since) holds[block] = place;
      since.clear();
      ++*checkpoints;
      continue;
    }
    const auto place = rig.place_of(write.offset);
    if (!place) continue;
    for (std::uint32_t i = 0; i < write.length / 4096; ++i) {
      const std::uint32_t block = place->block + i;
      ASSERT_TRUE(since.emplace(block, place->place).second) << block;
      const auto held = holds.find(block);
      ASSERT_TRUE(held == holds.end() || held->second != place->place) << block;
    }
  }
}

TEST(BoscSweep, ABlockIsNeverCommittedTwiceBetweenTwoCheckpoints) {
  BoscRig::Options options;
  options.store.commit_at = 0.05;
  BoscRig rig(options);
  std::mt19937_64 random(1);
  for (int i = 0; i < 80'000; ++i) {
    rig.add(static_cast<std::uint32_t>(random() % 40), 1);
    if (i % 16 == 0) rig.turn(1);
  }
  ASSERT_TRUE(rig.commit_all());
  std::size_t checkpoints = 0;
  check_places(rig, &checkpoints);
  EXPECT_GT(checkpoints, 10u);
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscSweep, WhatWasCommittedWaitsForACheckpointThatSucceeds) {
  BoscRig rig;
  for (std::uint32_t i = 0; i < 40; ++i) rig.add(i, 0);
  ASSERT_TRUE(rig.commit_all());
  rig.add(3, 1);
  rig.store->commit_all([](const Result<void>&) {});
  rig.turn_until([&] { return rig.store->statistics().checkpoints == 2; });
  rig.disk->fail_writes(1, Remains::kNothing);  // of the checkpoint
  rig.add(3, 1);
  rig.turn_until([&] { return !rig.errors.empty(); });
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.store->queued({3}), 0u) << "it is committed, however many sweeps that takes";
  EXPECT_EQ(rig.store->frontier(), 42u);
  std::size_t checkpoints = 0;
  check_places(rig, &checkpoints);
  rig.crash();
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscSweep, BlocksAreCommittedInTheOrderOfAddressesHoweverMuchWaitsForThem) {
  const auto rig = written_rig();
  for (std::uint32_t i = 0; i < 200; ++i) rig->add(24, 1);
  for (std::uint32_t block = 0; block < 40; block += 8) rig->add(block, 1);
  const std::size_t from = rig->disk->writes().size();
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->runs_since(from), "0-0 8-8 16-16 24-24 32-32 ");
}

// How often the block was written since the `from`th write.
std::size_t commits_of(const BoscRig& rig, std::uint32_t block, std::size_t from) {
  std::size_t commits = 0;
  for (std::size_t i = from; i < rig.disk->writes().size(); ++i) {
    const ByteRange& write = rig.disk->writes()[i];
    const auto place = rig.place_of(write.offset);
    if (place && place->block <= block && block < place->block + write.length / 4096) ++commits;
  }
  return commits;
}

TEST(BoscSweep, WhatLookupsMadeDirtyIsCommittedWithoutWhatLiesBetween) {
  const auto rig = written_rig();
  for (std::uint32_t block = 0; block < 40; ++block) rig->add(block, 1);
  const std::size_t from = rig->disk->writes().size();
  for (int round = 0; round < 10; ++round) {
    // 13 of the 16 blocks of the cache: more than its share of dirty ones.
    for (std::uint32_t block = 0; block < 39; block += 3) ASSERT_TRUE(rig->read(block));
    for (std::uint32_t block = 0; block < 39; block += 3) rig->add(block, 2);
    rig->executor.run_until_idle();
  }
  EXPECT_GT(rig->store->statistics().blocks_committed, 2u * 13u);
  EXPECT_EQ(rig->store->statistics().sweeps, 0u);
  EXPECT_GT(rig->store->statistics().checkpoints, 1u) << "so that they can be committed again";
  std::size_t checkpoints = 0;
  check_places(*rig, &checkpoints);
  EXPECT_EQ(commits_of(*rig, 1, from), 0u);
  EXPECT_EQ(rig->store->statistics().blocks_carried, 0u);
  EXPECT_EQ(rig->compare(), "");
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, AllIsCommittedAlsoWhatCameWhileItsBlockWasBeingCommittedEarly) {
  BoscRig::Options options;
  options.store.run_blocks_max = 8;
  options.store.runs_in_flight = 4;  // two for what is early, and the sweep can begin
  const auto rig = written_rig(options);
  for (std::uint32_t block = 0; block < 13; ++block) {
    ASSERT_TRUE(rig->read(block));
    rig->add(block, 2);
  }
  rig->disk->hold();
  rig->turn(3);
  ASSERT_TRUE(rig->store->is_committing({0}));
  rig->add(0, 2);
  ASSERT_EQ(rig->store->queued({0}), 1u);
  std::optional<Result<void>> committed;
  rig->store->commit_all([&](Result<void> r) { committed = std::move(r); });
  rig->turn(3);
  rig->disk->release();
  rig->turn_until([&] { return committed.has_value(); });
  EXPECT_TRUE(*committed);
  EXPECT_EQ(rig->store->queued({0}), 0u);
  EXPECT_EQ(rig->store->frontier(), 40u + 13u + 1u);
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, ASweepBeginsWhenTheQueuesTakeTheirShare) {
  BoscRig rig;
  const auto room = static_cast<double>(rig.options.store.memory_bytes -
                                        rig.options.store.cache_bytes - 2 * 4 * 4096 * 2);
  std::uint32_t i = 0;
  for (; rig.store->queued_bytes() < static_cast<std::size_t>(room * 0.8); ++i) {
    ASSERT_TRUE(rig.executor.idle()) << "at " << rig.store->queued_bytes();
    rig.add(i % 40, 1);
  }
  EXPECT_FALSE(rig.executor.idle());
  rig.executor.run_until_idle();
  EXPECT_LT(rig.store->queued_bytes(), static_cast<std::size_t>(room * 0.8));
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscSweep, ASweepBeginsWhenTooMuchWouldHaveToBeReplayed) {
  BoscRig::Options options;
  options.store.replay_max = 100;
  BoscRig rig(options);
  for (int i = 0; i < 100; ++i) rig.add(3, 1);
  rig.executor.run_until_idle();
  EXPECT_EQ(rig.store->frontier(), 0u);
  rig.add(3, 1);
  rig.executor.run_until_idle();
  EXPECT_EQ(rig.store->frontier(), 101u);
}

TEST(BoscSweep, ASweepBeginsWhenTheQueuesTakeAPartOfWhatTheBlocksDo) {
  BoscRig::Options options;
  options.store.memory_bytes = std::size_t{64} << 20;
  options.store.commit_at_contents = 1.0;
  BoscRig rig(options);
  // The blocks take less than the least that counts.
  std::size_t most = 0;
  while (rig.store->statistics().sweeps == 0) {
    most = rig.store->queued_bytes();
    ASSERT_LT(most, mariner::index::Bosc::kCommittedBytesMin);
    rig.add(3, 1);
    rig.executor.run_until_idle();
  }
  EXPECT_GE(most + 4096, mariner::index::Bosc::kCommittedBytesMin);
  EXPECT_EQ(rig.store->statistics().sweeps, 1u);
  EXPECT_EQ(rig.store->queued_bytes(), 0u);
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscSweep, FailedWritesAreRetriedAndLoseNothing) {
  for (const Remains remains : {Remains::kNothing, Remains::kSomeSectors, Remains::kEverything}) {
    for (std::size_t failures = 1; failures < 12; ++failures) {
      const auto rig = written_rig();
      for (std::uint32_t i = 0; i < 40; i += 3) rig->add(i, 1, i);
      rig->disk->fail_writes(failures, remains);
      EXPECT_FALSE(rig->commit_all());
      EXPECT_FALSE(rig->errors.empty());
      ASSERT_EQ(rig->compare(), "");
      while (!rig->commit_all()) {
      }
      EXPECT_EQ(rig->store->queued_bytes(), 0u);
      rig->crash();
      EXPECT_EQ(rig->replayed, 0u);
      ASSERT_EQ(rig->compare(), "");
    }
  }
}

TEST(BoscSweep, WhatCameWhileAWriteFailedStandsBehindWhatWasTaken) {
  const auto rig = written_rig();
  rig->add(3, 1, 7);
  rig->disk->hold();
  rig->store->commit_all([](const Result<void>&) {});
  rig->turn(3);
  ASSERT_TRUE(rig->store->is_committing({3}));
  rig->add(3, 2, 8);
  rig->disk->fail_writes(1, Remains::kNothing);
  rig->disk->release();
  rig->turn(2);
  ASSERT_FALSE(rig->store->is_committing({3}));
  std::string order;
  rig->store->query(
      {3},
      [&](const index::BlockView& view) {
        view.pending.for_each(
            [&](index::Modification m) { order += std::to_string(static_cast<int>(m[0])) + " "; });
        return true;
      },
      [](const Result<bool>&) {});
  EXPECT_EQ(order, "1 2 ");
  ASSERT_TRUE(rig->commit_all());
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, UnreadableBlocksKeepTheirQueueAndAreReported) {
  const auto rig = written_rig();
  for (std::uint32_t i = 0; i < 40; ++i) rig->add(i, 1, i);
  rig->disk->fail_reads({rig->superblock.offset_of({9}, 0), 4096});
  EXPECT_FALSE(rig->commit_all());
  EXPECT_FALSE(rig->errors.empty());
  EXPECT_EQ(rig->store->queued({9}), 1u);
  EXPECT_EQ(rig->store->queued({20}), 0u) << "the others are committed";
  EXPECT_EQ(rig->store->frontier(), 40u + 8) << "the first that one of its read lacks is 49";
  rig->disk->fail_reads({});
  ASSERT_TRUE(rig->commit_all());
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

// The run's memory holds anything where a read has failed, until the others of it are written.
TEST(BoscSweep, WhatCouldNotBeReadIsNotShown) {
  const auto rig = written_rig();
  for (std::uint32_t i = 8; i < 12; ++i) rig->add(i, 1, i);
  rig->disk->fail_reads({rig->superblock.offset_of({9}, 0), 4096});
  std::optional<Result<void>> committed;
  rig->store->commit_all([&](Result<void> r) { committed = std::move(r); });
  std::size_t committing = 0;
  while (!committed) {
    committing += rig->store->is_committing({9}) ? 1 : 0;
    static_cast<void>(rig->store->look_now({9}, nullptr, [](const index::BlockView& view) {
      EXPECT_FALSE(view.complete);
      EXPECT_EQ(view.pending.count(), 1u);
      return false;
    }));
    if (rig->executor.turn() == 0) rig->executor.advance(std::chrono::microseconds(100));
  }
  EXPECT_GT(committing, 1u);
  EXPECT_FALSE(*committed);
  EXPECT_FALSE(rig->read(9));
  rig->disk->fail_reads({});
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, DamagedBlocksKeepTheirQueueAndAreReported) {
  const auto rig = written_rig();
  rig->disk->flip_bit(rig->superblock.offset_of({9}, 0) + 999, 1);
  for (std::uint32_t i = 0; i < 40; ++i) rig->add(i, 1, i);
  EXPECT_FALSE(rig->commit_all());
  EXPECT_EQ(rig->errors, std::vector<std::string>{"9: index block 9 is damaged"});
  EXPECT_EQ(rig->store->queued({9}), 1u);
  EXPECT_EQ(rig->store->frontier(), 40u + 9);
  EXPECT_FALSE(rig->commit_all());
  EXPECT_EQ(rig->store->queued({9}), 1u);
  // Made good again, all that is queued for it is committed.
  rig->disk->flip_bit(rig->superblock.offset_of({9}, 0) + 999, 1);
  ASSERT_TRUE(rig->commit_all());
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

// What they keep back of the log is longer than it may be all the time, and that is no reason to
// sweep all the time: neither to carry the clean one between them, nor for what comes elsewhere.
TEST(BoscSweep, DamagedBlocksAreTriedNowAndThen) {
  BoscRig::Options options;
  options.store.replay_max = 50;
  const auto rig = written_rig(options);
  for (const std::uint32_t damaged : {8u, 10u}) {
    rig->disk->flip_bit(rig->superblock.offset_of({damaged}, 0) + 999, 1);
    for (int i = 0; i < 50; ++i) rig->add(damaged, 1);
  }
  const auto sweeps = [&, before = rig->store->statistics().sweeps] {
    return rig->store->statistics().sweeps - before;
  };
  rig->executor.advance(std::chrono::milliseconds(4500));
  EXPECT_EQ(sweeps(), 5u) << "one each second";
  EXPECT_GT(rig->store->statistics().blocks_carried, 0u);
  for (int i = 0; i < 500; ++i) {
    rig->add(20, 1);
    rig->executor.run_ready();
  }
  EXPECT_EQ(sweeps(), 5u);
  EXPECT_EQ(rig->store->queued({8}), 50u);
  rig->executor.advance(std::chrono::milliseconds(1000));
  EXPECT_EQ(sweeps(), 6u);
  EXPECT_EQ(rig->store->queued({20}), 0u);
  for (const std::uint32_t damaged : {8u, 10u}) {
    rig->disk->flip_bit(rig->superblock.offset_of({damaged}, 0) + 999, 1);
  }
  ASSERT_TRUE(rig->commit_all());
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, AMisdirectedWriteIsFoundAtItsPlaceAndWhereItLanded) {
  const auto rig = written_rig();
  rig->add(3, 1);
  rig->disk->misdirect_next_write(rig->superblock.offset_of({20}, 0));
  ASSERT_TRUE(rig->commit_all());
  rig->restart();
  EXPECT_EQ(rig->read(3).error().message, "index block 3 is damaged");
  EXPECT_EQ(rig->read(20).error().message, "index block 20 is another block");
}

TEST(BoscSweep, QueriesDuringARunSeeEverything) {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{64} << 10}) {
    BoscRig::Options options;
    options.store.cache_bytes = cache_bytes;
    const auto rig = written_rig(options);
    for (std::uint32_t i = 0; i < 40; ++i) rig->add(i, 1, i);
    bool done = false;
    rig->store->commit_all([&](const Result<void>& r) { done = r.has_value(); });
    std::mt19937_64 random(1);
    std::size_t committing = 0;
    for (int i = 0; !done; ++i) {
      ASSERT_LT(i, 10'000);
      const auto block = static_cast<std::uint32_t>(random() % 40);
      committing += rig->store->is_committing({block}) ? 1 : 0;
      if (i % 2 == 0) rig->add(block, 3, 5);
      const auto found = rig->read(block);
      ASSERT_TRUE(found.has_value());
      ASSERT_EQ(*found, rig->model[block]);
      if (i % 3 == 0) rig->turn(1);
    }
    EXPECT_GT(committing, 0u);
    EXPECT_EQ(rig->compare(), "");
    rig->crash();
    EXPECT_EQ(rig->compare(), "");
  }
}

TEST(BoscSweep, AddedBlocksAreWrittenWithTheirBlock) {
  const auto rig = written_rig();
  rig->add(3, CounterFunction::kDividing);
  rig->add(3, 1);
  rig->add(3, CounterFunction::kDividing);
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->function->added, (std::vector<BlockAddress>{{40}, {41}}));
  rig->crash();
  EXPECT_TRUE(rig->store->on_disk({40}));
  EXPECT_TRUE(rig->store->on_disk({41}));
  EXPECT_EQ(rig->store->local_frontier({41}), rig->store->local_frontier({3}));
  EXPECT_TRUE(rig->read(41).has_value());
}

TEST(BoscSweep, BlocksThatAFailedRunAddedAreGivenBack) {
  const auto rig = written_rig();
  rig->add(3, CounterFunction::kDividing);
  rig->disk->fail_writes(2, Remains::kEverything);
  EXPECT_FALSE(rig->commit_all());
  EXPECT_EQ(rig->store->allocated_blocks(), 40u);
  EXPECT_TRUE(rig->function->added.empty());
  while (!rig->commit_all()) {
  }
  EXPECT_EQ(rig->store->allocated_blocks(), 41u);
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscSweep, DrainsInTheMiddleOfARun) {
  for (std::size_t turns = 0; turns < 12; ++turns) {
    const auto rig = written_rig();
    for (std::uint32_t i = 0; i < 40; ++i) rig->add(i, 1, i);
    rig->store->commit_all([](const Result<void>&) {});
    rig->turn(turns);
    rig->restart();
    ASSERT_EQ(rig->compare(), "") << turns;
  }
}

}  // namespace
}  // namespace mariner::test
