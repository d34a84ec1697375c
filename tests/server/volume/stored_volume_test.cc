#include "server/volume/stored_volume.h"

#include "tests/server/volume/stored_volume_fixture.h"

namespace mariner::volume {
namespace {

using replication::WriteKind;
using replication::WriteMessage;

TEST_F(StoredVolumeTest, WhatIsInMemoryIsAppliedWithoutAQuestion) {
  make();
  write(1, {{1}, {2}}, 'a');
  apply();
  EXPECT_EQ(image(), "iaaiii");
  EXPECT_EQ(durable_, SequenceNumber{1});
  EXPECT_TRUE(history_.locates.empty());
}

TEST_F(StoredVolumeTest, WhatAStartFindsIsAskedForWithItsBytes) {
  make({.frontier = {3}, .last = {9}, .unapplied = {{{1}, {4}}}, .unapplied_since = {1}});
  apply();
  ASSERT_EQ(history_.locates.size(), 1u);
  const History::Lookup asked = history_.locates.front().lookups.at(0);
  EXPECT_EQ(asked.range, (BlockRange{{1}, {4}}));
  EXPECT_EQ(asked.at, SequenceNumber{9});
  EXPECT_TRUE(asked.with_bytes);
  answer({run({{1}, {1}}, Source::kLog, 'x'), run({{2}, {1}}, Source::kZero)});
  EXPECT_EQ(image(), "iiiiii") << "the rest is still to be answered";
  answer({run({{3}, {1}}, Source::kBase), run({{4}, {1}}, Source::kLog, 'y')});
  EXPECT_EQ(image(), "ix0iyi");
  EXPECT_EQ(durable_, SequenceNumber{9});
}

TEST_F(StoredVolumeTest, TheBaseIsCapturedBeforeItIsOverwrittenAndKeptUnderZeros) {
  all_in_base();
  make();
  write(1, {{1}, {2}}, 'a');
  write(2, {{4}, {2}}, 0);
  apply();
  ASSERT_EQ(history_.locates.front().lookups.size(), 2u);
  EXPECT_EQ(history_.locates.front().lookups[0].at, SequenceNumber{0});
  answer({run({{1}, {1}}, Source::kLog), run({{2}, {1}}, Source::kBase),
          run({{4}, {1}}, Source::kBase), run({{5}, {1}}, Source::kLog)});
  AskedHistory::BeforeImage captured = AskedHistory::next(history_.before_images);
  EXPECT_EQ(captured.range, (BlockRange{{2}, {1}}));
  EXPECT_EQ(text_of(captured.bytes.bytes()), "i");
  EXPECT_EQ(image(), "iiiiii") << "not before it is durable";
  captured.done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "iaaii0");
}

// After a crash nobody would know that the image shows what should read as zeros.
TEST_F(StoredVolumeTest, WhatIsNotStoredAsBaseYetIsNotKeptUnderZeros) {
  base_.add({{0}, {kBlocks}});
  make();
  write(1, {{1}, {2}}, 0);
  apply();
  answer({run({{1}, {1}}, Source::kBase), run({{2}, {1}}, Source::kLog)});
  AskedHistory::BeforeImage captured = AskedHistory::next(history_.before_images);
  EXPECT_EQ(captured.range, (BlockRange{{1}, {1}}));
  captured.done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "i00iii");
}

TEST_F(StoredVolumeTest, AHistoryThatIsAwayIsAskedAgain) {
  all_in_base();
  make();
  write(1, {{1}, {1}}, 'a');
  apply();
  const Error away{ErrorCode::kUnavailable, "the logger is away"};
  AskedHistory::next(history_.locates).done(away);
  EXPECT_EQ(failures_, 1);
  apply();
  answer({run({{1}, {1}}, Source::kBase)});
  AskedHistory::next(history_.before_images).done(away);
  executor_.run_ready();
  EXPECT_EQ(failures_, 1) << "told once";
  EXPECT_EQ(image(), "iiiiii");
  apply();
  answer({run({{1}, {1}}, Source::kLog)});  // that was done, but not told
  EXPECT_EQ(image(), "iaiiii");
  EXPECT_EQ(durable_, SequenceNumber{1});
}

TEST_F(StoredVolumeTest, AReadBesideTheBaseShowsZerosThatTheImageDoesNot) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{0}, {3}});
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{5});
  answer({run({{0}, {1}}, Source::kBase), run({{1}, {1}}, Source::kZero),
          run({{2}, {1}}, Source::kLog)},
         5);
  EXPECT_EQ(read_, "i0i");
}

// The answer is made after a newer write, for which the log has taken the zeros into a
// before-image: the image shows what was below them.
TEST_F(StoredVolumeTest, ABeforeImageForTheSakeOfANewerWriteIsReadFromTheHistory) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{0}, {2}});
  answer({run({{0}, {1}}, Source::kLog), run({{1}, {1}}, Source::kBase)}, 6);
  EXPECT_FALSE(read_);
  AskedHistory::Read asked = AskedHistory::next(history_.reads);
  EXPECT_EQ(asked.range, (BlockRange{{0}, {1}}));
  EXPECT_EQ(asked.at, SequenceNumber{5});
  std::memset(asked.to.data(), 0, asked.to.size());
  asked.done(std::vector<BlockRange>{});
  EXPECT_EQ(read_, "0i");
}

// A late answer: what it is about has been applied meanwhile.
TEST_F(StoredVolumeTest, AnAnswerFromBeforeATableWasFrozenDoesNotCount) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  begin_read({{1}, {1}});
  write(6, {{1}, {1}}, 'a');
  apply();
  AskedHistory::Locate late = AskedHistory::next(history_.locates);
  answer({run({{1}, {1}}, Source::kBase)});
  AskedHistory::next(history_.before_images).done({});
  executor_.run_ready();
  EXPECT_EQ(image(), "iaiiii");
  late.done(History::Located{{run({{1}, {1}}, Source::kZero)}, SequenceNumber{5}});
  EXPECT_FALSE(read_) << "it looks again";
  answer({run({{1}, {1}}, Source::kLog)}, 6);
  EXPECT_EQ(read_, "a");
}

TEST_F(StoredVolumeTest, WhatIsPendingInThePastAloneIsLookedForAgainAfterAFreeze) {
  make({.frontier = {3}, .last = {6}, .unapplied = {{{1}, {1}}}, .unapplied_since = {1}});
  begin_read({{1}, {1}});
  AskedHistory::next(history_.reads).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(read_, "unavailable") << "it is nowhere else";
  begin_read({{1}, {1}});
  AskedHistory::Read late = AskedHistory::next(history_.reads);
  EXPECT_EQ(late.at, SequenceNumber{6});
  apply();
  answer({run({{1}, {1}}, Source::kLog, 'a')});
  EXPECT_EQ(image(), "iaiiii");
  late.done(Error{ErrorCode::kCorrupt, "the log has given it up since"});
  executor_.run_ready();
  EXPECT_EQ(read_, "a") << "from the image";
}

TEST_F(StoredVolumeTest, APunchAsksForWhatIsCommittedAndNothingIsAppliedUntilItIsDone) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  std::optional<bool> punched;
  write(6, {{5}, {1}}, 'a');
  stored_->storage().punch({{{1}, {3}}}, [&](const Result<void>& r) { punched = r.has_value(); });
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{6});
  write(7, {{1}, {2}}, 'a');
  apply();
  EXPECT_EQ(history_.locates.size(), 1u) << "the image stands still";
  answer({run({{1}, {1}}, Source::kZero), run({{2}, {1}}, Source::kLog),
          run({{3}, {1}}, Source::kZero)});
  EXPECT_EQ(punched, true);
  answer({run({{1}, {2}}, Source::kLog), run({{5}, {1}}, Source::kLog)});
  EXPECT_EQ(image(), "iaa0ia");
}

TEST_F(StoredVolumeTest, APunchThatCannotAskIsToldAndHoldsNothingUp) {
  all_in_base();
  make({.frontier = {5}, .last = {5}});
  std::optional<ErrorCode> code;
  stored_->storage().punch({{{1}, {3}}}, [&](const Result<void>& r) { code = r.error().code; });
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  write(6, {{1}, {1}}, 'a');
  apply();
  answer({run({{1}, {1}}, Source::kLog)});
  EXPECT_EQ(image(), "iaiiii");
}

}  // namespace
}  // namespace mariner::volume
