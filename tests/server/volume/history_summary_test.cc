#include "server/volume/history_summary.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/volume/logged_rig.h"

namespace mariner::volume {
namespace {

class HistorySummaryTest : public ::testing::Test {
 protected:
  // The times of writes are their numbers.
  HistorySummaryTest() {
    rig_.write(1, {{0}, {2}}, 'a');
    rig_.write(2, {{1}, {1}}, 'b');
    rig_.write(3, {{4}, {8}}, 0, replication::WriteKind::kZero);
    rig_.write(4, {{4}, {1}}, 'c');
    replication::WriteMessage back;
    back.volume = test::LoggedRig::kVolume;
    back.stamp = {Epoch{1}, SequenceNumber{5}, VersionTime{5}};
    back.write.kind = replication::WriteKind::kRollback;
    back.write.target = SequenceNumber{1};
    back.write.target_time = VersionTime{1};
    rig_.log.log(back, [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.executor.run_ready();
  }
  HistorySummary summary(const HistorySummary::Question& question) {
    std::optional<Result<HistorySummary>> out;
    summarize(rig_.index.index(), question, [&](Result<HistorySummary> s) { out = std::move(s); });
    rig_.executor.run_ready();
    EXPECT_TRUE(out && *out);
    return out && *out ? **out : HistorySummary{};
  }

  test::LoggedRig rig_{false};
};

TEST_F(HistorySummaryTest, CountsWhatHappened) {
  const HistorySummary all = summary({{0}, {5}});
  EXPECT_EQ(all.writes, 5u);
  EXPECT_EQ(all.bytes, 4 * kBlockBytes) << "zeros and the rollback write nothing";
  EXPECT_TRUE(all.columns.empty());
  EXPECT_TRUE(all.list.empty());
  ASSERT_EQ(all.rollbacks.size(), 1u);
  EXPECT_EQ(all.rollbacks[0].sequence, SequenceNumber{5});
  EXPECT_EQ(all.rollbacks[0].target, SequenceNumber{1});
  EXPECT_FALSE(all.truncated);
  const HistorySummary part = summary({{1}, {2}});
  EXPECT_EQ(part.writes, 1u);
  EXPECT_EQ(part.distinct_bytes, kBlockBytes);
  EXPECT_TRUE(part.rollbacks.empty());
}

// Which writes came behind a moment that is kept, the log does not know any more.
TEST_F(HistorySummaryTest, WhatDiffersFromAKeptMomentIsMoreThanWhatTheLogStillHas) {
  rig_.log.log_kept({.range = {{4}, {8}}, .from = {2}, .through = {2}, .zeros = true}, {},
                    [](const Result<void>& r) { EXPECT_TRUE(r); });
  rig_.executor.run_ready();
  index::StoredIndex& index = rig_.index.index();
  index.set_horizon({{3}, {3}});
  index.set_kept({{{{2}, {2}}, {2}}});
  index.forget_through({3}, 0);
  EXPECT_EQ(summary({{2}, {4}}).distinct_bytes, 8 * kBlockBytes);
  EXPECT_EQ(summary({{3}, {4}}).distinct_bytes, kBlockBytes);
}

TEST_F(HistorySummaryTest, DrawsItUpInColumns) {
  const HistorySummary drawn = summary({{0}, {5}, {2}, 2, 2, 0});
  ASSERT_EQ(drawn.columns.size(), 2u);
  EXPECT_EQ(drawn.columns[0].writes, 2u) << "of the times 2 and 3";
  EXPECT_EQ(drawn.columns[0].bytes, kBlockBytes);
  EXPECT_EQ(drawn.columns[1].writes, 2u);
  EXPECT_TRUE(summary({{0}, {5}, {2}, 0, 2, 0}).columns.empty()) << "of no width";
}

TEST_F(HistorySummaryTest, ListsTheFirstWritesAndSaysWhenThereAreMore) {
  const HistorySummary all = summary({{0}, {5}, {}, 0, 0, 5});
  ASSERT_EQ(all.list.size(), 5u);
  EXPECT_EQ(all.list[2].type, logging::RecordType::kZero);
  EXPECT_EQ(all.list[2].extent, (BlockRange{{4}, {8}}));
  EXPECT_FALSE(all.truncated);
  const HistorySummary some = summary({{0}, {5}, {}, 0, 0, 2});
  EXPECT_EQ(some.list.size(), 2u);
  EXPECT_TRUE(some.truncated);
  EXPECT_EQ(some.writes, 5u);
}

}  // namespace
}  // namespace mariner::volume
