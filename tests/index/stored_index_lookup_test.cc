// Kept moments in a stored index. What else it knows of blocks, stored_index_test.cc compares with
// an index in memory.
#include <gtest/gtest.h>

#include <vector>

#include "index/stored_index.h"
#include "tests/support/index_rig.h"

namespace mariner::test {
namespace {

using index::KeptMoment;
using index::LocatedRun;
using logging::LogLocation;
using logging::Record;
using logging::RecordType;

class StoredIndexLookupTest : public ::testing::Test {
 protected:
  // Its record stands at ten times its ordinal.
  std::uint64_t add(Record record) {
    record.ordinal = ++ordinal_;
    rig_.insert(record, LogLocation{ordinal_ * 10, 1, 0, 1, 0});
    return ordinal_;
  }
  void write(std::uint64_t sequence, BlockRange extent) {
    Record record;
    record.sequence = {sequence};
    record.time = {sequence * 100};
    record.extent = extent;
    record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    add(record);
  }
  void rollback(std::uint64_t sequence, std::uint64_t target) {
    Record record;
    record.type = RecordType::kRollback;
    record.sequence = {sequence};
    record.time = {sequence * 100};
    record.target_sequence = {target};
    add(record);
  }
  std::uint64_t again(std::uint64_t from, std::uint64_t through, BlockRange extent,
                      bool zeros = false) {
    Record record;
    record.type = RecordType::kRelocated;
    record.target_sequence = {from};
    record.target_time = {through};
    record.extent = extent;
    if (!zeros) record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    return add(record);
  }
  // The log has given up what was written up to here; moments from it on can be opened.
  void give_up(std::uint64_t sequence, std::vector<std::uint64_t> kept) {
    index().forget_through({sequence}, 0);
    index().set_horizon({{sequence}, {sequence * 100}});
    std::vector<KeptMoment> moments;
    for (const std::uint64_t at : kept) moments.push_back({{{at}, {at * 100}}, {at * 100 + 50}});
    index().set_kept(moments);
  }
  LocatedRun locate(std::uint64_t block, std::uint64_t at) {
    return rig_.answers().locate({{block}, {1}}, {at}).front();
  }
  index::StoredIndex& index() { return rig_.index(); }

  ManualExecutor executor_;
  IndexRig rig_{executor_};
  std::uint64_t ordinal_ = 0;
};

TEST_F(StoredIndexLookupTest, AKeptMomentFindsWhatWasWrittenAgainAndElseTheBase) {
  write(1, {{0}, {8}});
  write(2, {{0}, {4}});
  const std::uint64_t ordinal = again(1, 1, {{0}, {4}});
  again(1, 1, {{6}, {1}}, true);
  give_up(2, {1});
  const LocatedRun run = locate(2, 1);
  EXPECT_EQ(run.source, LocatedRun::Source::kLog);
  EXPECT_EQ(run.base_ordinal, ordinal);
  EXPECT_EQ(run.payload_block, 2U);
  EXPECT_TRUE(run.for_kept);
  EXPECT_EQ(locate(6, 1).source, LocatedRun::Source::kZero);
  EXPECT_EQ(locate(5, 1).source, LocatedRun::Source::kBase);
  EXPECT_EQ(locate(2, 2).source, LocatedRun::Source::kBase) << "no other moment sees it";
  EXPECT_FALSE(index().can_be_opened({0}));
  EXPECT_TRUE(index().can_be_opened({1}));
  EXPECT_TRUE(index().can_be_opened({2}));
}

TEST_F(StoredIndexLookupTest, TheLastOneThatWasWrittenAgainCounts) {
  write(9, {{0}, {1}});
  again(1, 5, {{0}, {1}});
  const std::uint64_t later = again(3, 5, {{0}, {1}});
  give_up(9, {1, 4});
  EXPECT_NE(locate(0, 1).base_ordinal, later);
  EXPECT_EQ(locate(0, 4).base_ordinal, later);
  index().forget_through({9}, later);
  EXPECT_EQ(locate(0, 4).source, LocatedRun::Source::kBase) << "its record is gone";
}

TEST_F(StoredIndexLookupTest, ARollbackLeadsToAKeptMoment) {
  write(2, {{0}, {2}});
  const std::uint64_t ordinal = again(1, 1, {{0}, {1}});
  give_up(2, {1});
  rollback(5, 1);
  EXPECT_EQ(locate(0, 5).base_ordinal, ordinal);
  EXPECT_EQ(locate(0, 4).source, LocatedRun::Source::kBase);
  EXPECT_EQ(index().kept_targets({5}), (std::vector<SequenceNumber>{{1}}));
  EXPECT_TRUE(index().kept_targets({4}).empty());
}

TEST_F(StoredIndexLookupTest, WhatChangedSinceAKeptMoment) {
  again(1, 1, {{0}, {2}});
  again(2, 2, {{10}, {1}});
  give_up(3, {1, 2});
  write(4, {{20}, {1}});
  EXPECT_EQ(rig_.answers().changed({1}, {4}), (std::vector<BlockRange>{{{0}, {2}}, {{20}, {1}}}));
  EXPECT_EQ(rig_.answers().changed({3}, {4}), (std::vector<BlockRange>{{{20}, {1}}}));
  rollback(5, 2);
  EXPECT_EQ(rig_.answers().changed({1}, {5}),
            (std::vector<BlockRange>{{{0}, {2}}, {{10}, {1}}, {{20}, {1}}}))
      << "also what the moment shows that a rollback went back to";
}

TEST_F(StoredIndexLookupTest, ATimeBeforeTheHorizonMeansAKeptMomentWhileNothingWasWritten) {
  write(7, {{0}, {1}});
  give_up(7, {2, 4});
  EXPECT_EQ(rig_.answers().moment_at({200}).sequence, SequenceNumber{2});
  EXPECT_EQ(rig_.answers().moment_at({250}).sequence, SequenceNumber{2});
  EXPECT_EQ(rig_.answers().moment_at({251}).sequence, SequenceNumber{0});
  EXPECT_EQ(rig_.answers().moment_at({420}).sequence, SequenceNumber{4});
  EXPECT_EQ(rig_.answers().moment_at({700}).sequence, SequenceNumber{7});
  EXPECT_EQ(rig_.answers().moment_of({4}).time, VersionTime{400});
  EXPECT_EQ(rig_.answers().moment_of({3}).sequence, SequenceNumber{0});
}

}  // namespace
}  // namespace mariner::test
