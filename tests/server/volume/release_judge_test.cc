#include "server/volume/release_judge.h"

#include <gtest/gtest.h>

#include "tests/support/index_rig.h"

namespace mariner::volume {
namespace {

using logging::LogLocation;
using logging::Record;
using logging::RecordType;
using Need = ReleaseJudge::Need;

// Records of a volume whose number n stands at block 10 n of the log.
class ReleaseJudgeTest : public ::testing::Test {
 protected:
  static LogLocation place(const Record& record, std::uint64_t extra = 0) {
    return {record.sequence.value * 10 + extra + 1, 1, 0, 1, 0};
  }
  Record add(RecordType type, std::uint64_t sequence, BlockRange extent, std::uint64_t target = 0) {
    Record record;
    record.type = type;
    record.sequence = {sequence};
    record.time = {sequence * 100};
    record.extent = extent;
    record.target_sequence = {target};
    if (type == RecordType::kWrite || type == RecordType::kBeforeImage) {
      record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    }
    index_.insert(record, place(record));
    return record;
  }
  Record write(std::uint64_t sequence, BlockRange extent) {
    return add(RecordType::kWrite, sequence, extent);
  }
  static Record before_image(BlockRange extent, std::uint64_t ordinal = 0) {
    Record record;
    record.type = RecordType::kBeforeImage;
    record.extent = extent;
    record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
    record.ordinal = ordinal;
    return record;
  }
  // Of a track that ends with this record.
  ReleaseJudge::Verdict judge(const Record& record, std::uint64_t horizon,
                              std::uint64_t durable = 1000, bool has_image = true) {
    VolumeDigest digest;
    digest.add(record);
    digest.complete();
    return judge(digest, {.horizon = {horizon}, .durable = {durable}, .has_image = has_image});
  }
  ReleaseJudge::Verdict judge(const VolumeDigest& digest, ReleaseJudge::Facts facts) {
    facts.given_up = digest.given_up;
    const Need need = ReleaseJudge::judge_numbers(digest, facts);
    if (need != Need::kNone) return {.need = need};
    std::vector<BlockRange> ranges = digest.written;
    ranges.insert(ranges.end(), digest.zeroed.begin(), digest.zeroed.end());
    return index_.answers().compute([&](const index::VersionLookup& lookup) {
      return ReleaseJudge(lookup, base_, facts).judge(ranges);
    });
  }

  test::ManualExecutor executor_;
  test::IndexRig index_{executor_};
  BaseMap base_{false};
};

TEST_F(ReleaseJudgeTest, WhatIsYoungerThanTheHorizonStays) {
  const Record one = write(5, {{0}, {4}});
  EXPECT_EQ(judge(one, 4).need, Need::kHistory);
  EXPECT_EQ(judge(one, 5).need, Need::kNone);
}

TEST_F(ReleaseJudgeTest, WhatWasReplacedBeforeTheHorizonIsFree) {
  const Record one = write(1, {{0}, {4}});
  write(2, {{0}, {4}});
  write(9, {{0}, {1}});
  EXPECT_EQ(judge(one, 1).to_move, (std::vector<BlockRange>{{{0}, {1}}, {{1}, {3}}}))
      << "1 shows it";
  const ReleaseJudge::Verdict free = judge(one, 2);
  EXPECT_EQ(free.need, Need::kNone);
  EXPECT_TRUE(free.to_base.empty());
}

TEST_F(ReleaseJudgeTest, WhatAMomentStillShowsIsMoved) {
  const Record one = write(1, {{0}, {4}});
  write(2, {{0}, {2}});
  write(9, {{3}, {1}});
  const ReleaseJudge::Verdict verdict = judge(one, 5);
  EXPECT_EQ(verdict.need, Need::kNone);
  EXPECT_EQ(verdict.to_move, (std::vector<BlockRange>{{{3}, {1}}})) << "until 9";
  EXPECT_EQ(verdict.to_base, (std::vector<BlockRange>{{{2}, {1}}})) << "still the newest";
  EXPECT_TRUE(judge(one, 9).to_move.empty());
}

TEST_F(ReleaseJudgeTest, ZerosThatAMomentStillShowsNeedNoRecordOverABaseOfZeros) {
  const Record zero = add(RecordType::kZero, 1, {{0}, {8}});
  write(9, {{0}, {8}});
  EXPECT_EQ(judge(zero, 5).need, Need::kNone);
  EXPECT_TRUE(judge(zero, 5).to_move.empty());
  base_.add({{2}, {3}});
  EXPECT_EQ(judge(zero, 5).to_move, (std::vector<BlockRange>{{{0}, {8}}}));
}

TEST_F(ReleaseJudgeTest, ZerosThatAMomentOfAWritableViewStillShowsAreMoved) {
  const Record zero = add(RecordType::kZero, 1, {{0}, {8}});
  write(9, {{0}, {8}});
  EXPECT_EQ(judge(zero, 5, 0, false).to_move, (std::vector<BlockRange>{{{0}, {8}}}))
      << "its base is what the parent held";
}

TEST_F(ReleaseJudgeTest, TheNewestVersionGoesToTheImageThatHoldsIt) {
  const Record one = write(1, {{0}, {4}});
  write(2, {{1}, {1}});
  const ReleaseJudge::Verdict verdict = judge(one, 5);
  EXPECT_EQ(verdict.need, Need::kNone);
  EXPECT_EQ(verdict.to_base, (std::vector<BlockRange>{{{0}, {1}}, {{2}, {2}}}));
  EXPECT_EQ(judge(one, 5, 0).need, Need::kImage);
  EXPECT_EQ(judge(one, 5, 0, false).need, Need::kHistory) << "there is no image";
}

TEST_F(ReleaseJudgeTest, ZerosNeedNoBaseUnlessTheImageKeptOne) {
  const Record zero = add(RecordType::kZero, 1, {{0}, {8}});
  EXPECT_TRUE(judge(zero, 5).to_punch.empty());
  base_.add({{2}, {3}});
  const ReleaseJudge::Verdict verdict = judge(zero, 5);
  EXPECT_EQ(verdict.need, Need::kNone);
  EXPECT_EQ(verdict.to_punch, (std::vector<BlockRange>{{{2}, {3}}}));
  EXPECT_TRUE(verdict.to_base.empty());
}

TEST_F(ReleaseJudgeTest, AnOlderBaseInTheLogBecomesVoid) {
  base_.add({{0}, {4}});
  const Record one = write(1, {{0}, {4}});
  const Record before = before_image({{1}, {2}});
  index_.insert(before, {999, 1, 0, 1, 0});
  EXPECT_EQ(judge(one, 5).to_rebase, (std::vector<BlockRange>{{{1}, {2}}}));
}

TEST_F(ReleaseJudgeTest, ABeforeImageThatGoesWithItsTrackNeedNotBeVoid) {
  base_.add({{0}, {4}});
  const Record before = before_image({{1}, {2}}, 2);
  const Record one = write(1, {{0}, {4}});
  index_.insert(before, {999, 1, 0, 1, 0});
  VolumeDigest digest;
  digest.add(one);
  digest.add(before);
  digest.complete();
  const ReleaseJudge::Facts facts{.horizon = {5}, .durable = {1000}, .end_ordinal = 2};
  EXPECT_EQ(judge(digest, facts).to_rebase, (std::vector<BlockRange>{{{1}, {2}}}));
  ReleaseJudge::Facts both = facts;
  both.end_ordinal = 3;
  EXPECT_TRUE(judge(digest, both).to_rebase.empty());
  EXPECT_EQ(judge(digest, both).to_base, (std::vector<BlockRange>{{{0}, {4}}}));
  // Another one, of the same contents, stays.
  index_.insert(before_image({{2}, {1}}, 3), {1999, 1, 0, 1, 0});
  EXPECT_EQ(judge(digest, both).to_rebase, (std::vector<BlockRange>{{{2}, {1}}}));
}

TEST_F(ReleaseJudgeTest, ABeforeImageThatIsCurrentIsMovedWhereAnotherOneStays) {
  base_.add({{0}, {4}});
  const Record before = before_image({{0}, {4}}, 1);
  index_.insert(before, {999, 1, 0, 1, 0});
  VolumeDigest digest;
  digest.add(before);
  digest.complete();
  index_.insert(before_image({{2}, {1}}, 3), {1999, 1, 0, 1, 0});
  const ReleaseJudge::Verdict verdict =
      judge(digest, {.horizon = {5}, .durable = {1000}, .end_ordinal = 2});
  EXPECT_EQ(verdict.need, Need::kNone);
  EXPECT_EQ(verdict.to_move, (std::vector<BlockRange>{{{2}, {1}}}));
  EXPECT_EQ(verdict.to_base, (std::vector<BlockRange>{{{0}, {2}}, {{3}, {1}}}));
  EXPECT_TRUE(verdict.to_rebase.empty()) << "the log keeps what the block is";
}

TEST_F(ReleaseJudgeTest, ABeforeImageThatAMomentShowsIsMoved) {
  base_.add({{0}, {4}});
  const Record before = before_image({{1}, {2}}, 1);
  index_.insert(before, {999, 1, 0, 1, 0});
  write(7, {{1}, {2}});
  VolumeDigest digest;
  digest.add(before);
  digest.complete();
  const auto facts = [](std::uint64_t horizon) {
    return ReleaseJudge::Facts{.horizon = {horizon}, .durable = {1000}, .end_ordinal = 2};
  };
  EXPECT_EQ(judge(digest, facts(5)).to_move, (std::vector<BlockRange>{{{1}, {2}}}));
  EXPECT_TRUE(judge(digest, facts(7)).to_move.empty());
}

// Each of two that go, and that moments show apart, would have to be the base.
TEST_F(ReleaseJudgeTest, OfTwoThatGoTogetherAndAreBothShownNoneIsTheBase) {
  const Record one = write(1, {{0}, {1}});
  const Record two = write(2, {{0}, {1}});
  VolumeDigest digest;
  digest.add(one);
  digest.add(two);
  digest.complete();
  const ReleaseJudge::Facts facts{.horizon = {5}, .durable = {1000}};
  EXPECT_EQ(judge(digest, facts).need, Need::kNone);
  add(RecordType::kRollback, 9, {}, 1);
  EXPECT_EQ(judge(digest, facts).need, Need::kHistory) << "5 shows the second, 9 the first";
  ReleaseJudge::Facts later = facts;
  later.horizon = {9};
  EXPECT_EQ(judge(digest, later).need, Need::kNone);
}

TEST_F(ReleaseJudgeTest, WhatTheImageLacksStaysEvenIfNoMomentShowsIt) {
  const Record one = write(3, {{0}, {4}});
  write(5, {{0}, {4}});
  EXPECT_EQ(judge(one, 5, 2).need, Need::kImage);
  const ReleaseJudge::Verdict free = judge(one, 5, 3);
  EXPECT_EQ(free.need, Need::kNone);
  EXPECT_TRUE(free.to_base.empty());
  EXPECT_TRUE(free.to_move.empty());
}

TEST_F(ReleaseJudgeTest, WhatALaterRollbackGoesBackToStays) {
  const Record one = write(1, {{0}, {1}});
  write(2, {{0}, {1}});
  const Record back = add(RecordType::kRollback, 9, {}, 1);
  EXPECT_EQ(judge(one, 5).need, Need::kHistory);
  EXPECT_EQ(judge(one, 9).need, Need::kNone) << "by now it is simply the newest";
  EXPECT_EQ(judge(one, 9, 8).need, Need::kImage) << "not before the image has been restored";
  EXPECT_EQ(judge(back, 8).need, Need::kHistory);
  EXPECT_EQ(judge(back, 9).need, Need::kNone);
}

TEST_F(ReleaseJudgeTest, ABaseThatALaterRollbackShowsIsNotReplaced) {
  const Record one = write(1, {{0}, {1}});
  add(RecordType::kRollback, 6, {}, 0);  // the moment 6 shows the base
  add(RecordType::kRollback, 8, {}, 2);  // and the newest one the write again
  EXPECT_EQ(judge(one, 5).need, Need::kHistory);
  EXPECT_EQ(judge(one, 8).need, Need::kNone);
}

TEST_F(ReleaseJudgeTest, WhatHoldsNoVersionIsFree) {
  const Record voided = add(RecordType::kVoid, 7, {}, 9);
  EXPECT_EQ(judge(voided, 0).need, Need::kNone);
}

}  // namespace
}  // namespace mariner::volume
