// The index on disk beside the one in memory, which has its own tests against a naive model.
#include "index/stored_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/index/stored_index_rig.h"
#include "tests/support/index_rig.h"
#include "tests/support/seeds.h"

namespace mariner::test {
namespace {

using index::Bosc;
using index::LocatedRun;
using index::StoredIndex;
using index::VersionLookup;
using logging::Record;
using logging::RecordType;

TEST(StoredIndex, AgreesWithTheOneInMemory) {
  for_seeds(60, [](std::uint64_t seed) {
    StoredIndexRig rig(seed);
    for (int round = 0; round < 15 && !::testing::Test::HasFailure(); ++round) {
      for (std::uint64_t i = rig.pick(120); i > 0; --i) rig.add_one();
      switch (rig.pick(6)) {
        case 0: rig.commit(); break;
        case 1: rig.restart(false); break;
        case 2: rig.restart(true); break;
        case 3: rig.forget(); break;
        default: break;
      }
      rig.compare();
    }
  });
}

TEST(StoredIndex, WhatWasGivenUpGoesWithASweepAsSoonAsItIsMuch) {
  ManualExecutor executor;
  IndexRig rig(executor);
  Record record;
  record.type = RecordType::kWrite;
  record.payload_blocks = 1;
  const auto write = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i <= to; ++i) {
      record.sequence = {i};
      record.time = {i * 10};
      record.extent = {Lbn{i % 50}, BlockCount{1}};
      rig.insert(record, {i * 8, 1, 0, 1, 0});
    }
    executor.run_ready();
  };
  write(1, 20'000);
  const std::uint64_t sweeps = rig.store().statistics().sweeps;
  const std::uint64_t pending = rig.index().pending_updates();
  rig.index().forget_through({10'000}, 0);
  executor.run_ready();
  EXPECT_EQ(rig.store().statistics().sweeps, sweeps) << "a few are not worth it";
  rig.index().forget_through({19'000}, 0);
  executor.run_ready();
  EXPECT_GT(rig.store().statistics().sweeps, sweeps);
  EXPECT_LT(rig.index().pending_updates(), pending / 4);
  write(20'001, 20'010);
  EXPECT_EQ(rig.answers().locate({{3}, {1}}, SequenceNumber{20'010})[0].sequence,
            SequenceNumber{20'003});
}

// A disk that is filled once, in small pieces: nothing comes to the leaves of what was given up.
TEST(StoredIndex, WhatIsWrittenOnceDoesNotFillTheIndexForGood) {
  ManualExecutor executor;
  IndexRig rig(executor, VolumeId{1}, std::uint64_t{24} << 20);
  constexpr std::uint64_t kKept = 5'000;
  constexpr std::uint64_t kWrites = 400'000;
  Record record;
  record.type = RecordType::kWrite;
  record.payload_blocks = 1;
  for (std::uint64_t i = 1; i <= kWrites; ++i) {
    record.sequence = {i};
    record.time = {i * 10};
    record.extent = {Lbn{2 * i}, BlockCount{1}};
    rig.insert(record, {i * 8, 1, 0, 1, 0});
    if (i % 500 != 0) continue;
    executor.advance(std::chrono::milliseconds(250));
    if (i > kKept) rig.index().forget_through({i - kKept}, 0);
    ASSERT_TRUE(rig.store().has_room()) << "at write " << i;
  }
  for (const std::uint64_t i : {kWrites - kKept + 1, kWrites}) {
    const auto found = rig.answers().locate({Lbn{2 * i}, {1}}, SequenceNumber{kWrites});
    EXPECT_EQ(found[0].sequence, SequenceNumber{i});
  }
}

// Writes and before-images come into the index in two orders, each by itself.
TEST(StoredIndex, ABeforeImageMayComeAfterARollbackThatWasLoggedLater) {
  ManualExecutor executor;
  FaultyDisk disk(executor, {.size_bytes = std::uint64_t{64} << 20});
  index::IndexShape shape;
  shape.block_bytes = 4096;
  ASSERT_TRUE(index::format_index_file(disk, shape));
  index::BoscOptions options;
  options.memory_bytes = std::size_t{4} << 20;
  options.cache_bytes = 0;
  const auto store = *Bosc::open(executor, disk, options);
  const auto stored = *StoredIndex::open(*store, StoredIndexRig::kVolume);
  Record record;
  record.volume = StoredIndexRig::kVolume;
  record.type = RecordType::kRollback;
  record.sequence = {5};
  record.target_sequence = {2};
  record.time = {50};
  record.ordinal = 11;
  stored->insert(record, {8, 1, 0, 1, 0});
  Record image;
  image.volume = StoredIndexRig::kVolume;
  image.type = RecordType::kBeforeImage;
  image.extent = {Lbn{7}, BlockCount{1}};
  image.payload_blocks = 1;
  image.ordinal = 10;
  stored->insert(image, {16, 1, 0, 1, 0});
  std::vector<LocatedRun> found;
  stored->consult([&](const VersionLookup& lookup) { found = lookup.locate(image.extent, {9}); },
                  [](const Result<void>& r) { EXPECT_TRUE(r); });
  executor.run_ready();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].source, LocatedRun::Source::kLog);
  EXPECT_EQ(stored->last_rollback(), SequenceNumber{5});
}

// After a crash: the later one had been committed, in another leaf.
TEST(StoredIndex, ARollbackMayComeAgainBehindALaterOne) {
  ManualExecutor executor;
  FaultyDisk disk(executor, {.size_bytes = std::uint64_t{64} << 20});
  index::IndexShape shape;
  shape.block_bytes = 4096;
  ASSERT_TRUE(index::format_index_file(disk, shape));
  const auto store = *Bosc::open(executor, disk, {});
  const auto stored = *StoredIndex::open(*store, StoredIndexRig::kVolume);
  const auto rollback = [&](std::uint64_t sequence, std::uint64_t target, std::uint64_t ordinal) {
    Record record;
    record.volume = StoredIndexRig::kVolume;
    record.type = RecordType::kRollback;
    record.sequence = {sequence};
    record.target_sequence = {target};
    record.time = {sequence};
    record.ordinal = ordinal;
    stored->insert(record, {8, 1, 0, 1, 0});
    executor.run_ready();
  };
  rollback(9, 4, 9);
  rollback(5, 2, 9);
  rollback(9, 4, 9);
  EXPECT_EQ(stored->rollback_targets({}), (std::vector<SequenceNumber>{{2}, {4}}));
}

}  // namespace
}  // namespace mariner::test
