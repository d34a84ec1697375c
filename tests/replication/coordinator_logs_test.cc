// The journals of both storage nodes in the logger's place. With the logger there:
// coordinator_role_test.cc; how it goes and returns: coordinator_away_test.cc.
#include <chrono>

#include "replication/coordinator_role.h"
#include "tests/replication/coordinator_logs_fixture.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

TEST_F(CoordinatorLogsTest, TheJournalsBeginBehindWhatTheLoggerHas) {
  make(kAway);
  EXPECT_EQ(connect_log(kOne), Words{"open log from 100 to 1"});
  EXPECT_EQ(connect_log(kTwo), Words{"open log from 100 to 2"});
  EXPECT_EQ(connect_log(kLogger), Words{}) << "it is spoken to when it is known what there is";
  EXPECT_EQ(hear_log(kOne, opened(100, 90)), Words{});
  EXPECT_EQ(hear_log(kTwo, opened(100, 0)), (Words{"void 101-112 to 1", "void 101-112 to 2"}));
  EXPECT_EQ(logged(kOne, 112), Words{});
  EXPECT_EQ(logged(kTwo, 112), (Words{"ready", "open log from 0 to 3"}));
  role_->storage_connected(kOne, out_);
  EXPECT_EQ(words(), Words{"open away since 100 to 1"});
  EXPECT_GT(role_->writes().floor().ns, kAway.floor.ns + LogAway::kTakeBackNs);
}

TEST_F(CoordinatorLogsTest, WhatOneJournalAloneHasIsTakenBack) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(205, 205));
  EXPECT_EQ(hear_log(kTwo, opened(203, 203)),
            (Words{"back to 203 as 206 to 1", "void 207-213 to 1", "void 204-213 to 2"}));
  // Again, if that was not the end of it: it stands there already.
  lose_log(kOne);
  connect_log(kOne);
  EXPECT_EQ(hear_log(kOne, opened(206, 203)), Words{"void 207-213 to 1"});
  logged(kTwo, 213);
  EXPECT_EQ(logged(kOne, 213), Words{"ready"});
  EXPECT_EQ(role_->settled(), SequenceNumber{213});
}

// What the other one has is all that is left of what was acknowledged.
TEST_F(CoordinatorLogsTest, BesideAJournalThatWasSetUpAnewTheOtherOneIsKeptAndBroughtToTheLogger) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(205, 203));
  EXPECT_EQ(hear_log(kTwo, opened(100, 0)),
            (Words{"drop log 2: unavailable", "void 206-213 to 1"}));
  EXPECT_EQ(logged(kOne, 213), Words{"ready"});
  EXPECT_EQ(submit(1), Words{"failed 1"});
  EXPECT_EQ(connect_log(kTwo), Words{}) << "it is not used in this epoch";
  role_->storage_connected(kOne, out_);
  hear(kOne, StorageOpened{kVolume, kEpoch, {100}, {10}});
  hear(kOne, CaughtUp{kVolume, kEpoch, role_->settled()});
  EXPECT_EQ(role_->reads_from(), kOne);
  connect_log(kLogger);
  hear_log(kLogger, opened(104, 99));
  EXPECT_EQ(logged(kLogger, 105), Words{"fetch 105-213"});
  LogSource::Portion portion;
  portion.through = {213};
  role_->fetched(portion, out_);
  EXPECT_EQ(words(), Words{"void 106-213 to 3"});
  EXPECT_EQ(logged(kLogger, 213), Words{"back with the logger"});
}

TEST_F(CoordinatorLogsTest, WhoseJournalWasSetUpAnewCoordinatesNothing) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kTwo, opened(205, 203));
  const Words hands_over{"drop log 1: unavailable", "hand over to 2"};
  EXPECT_EQ(hear_log(kOne, opened(100, 0)), hands_over);
  connect_log(kOne);
  EXPECT_EQ(hear_log(kOne, opened(100, 0)), hands_over) << "nor later";
  EXPECT_FALSE(role_->ready());
}

// ... while the numbers of the epoch before are voided: with voids alone it would pass for one that
// has taken part.
TEST_F(CoordinatorLogsTest, AJournalThatIsSetUpAnewWhileAnEpochBeginsIsSeenAsWell) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(205, 203));
  EXPECT_EQ(hear_log(kTwo, opened(205, 203)), (Words{"void 206-213 to 1", "void 206-213 to 2"}));
  logged(kOne, 213);
  lose_log(kTwo);
  connect_log(kTwo);
  EXPECT_EQ(hear_log(kTwo, opened(0, 0)),
            (Words{"drop log 1: unavailable", "drop log 2: unavailable"}));
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(213, 203));
  EXPECT_EQ(hear_log(kTwo, opened(0, 0)), (Words{"drop log 2: unavailable", "void 214-221 to 1"}));
  EXPECT_EQ(logged(kOne, 221), Words{"ready"});
  EXPECT_EQ(submit(1), Words{"failed 1"});
}

// What it was, the images tell.
TEST_F(CoordinatorLogsTest, ALogThatIsSetUpAnewWhileAnEpochBeginsIsNotWrittenTo) {
  make(std::nullopt);
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(10, 10)), Words{"void 11-18 to 3"});
  lose_log(kLogger);
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(0, 0)), Words{"drop log 3: unavailable"});
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(0, 0)), Words{"void 1-8 to 3"});
  EXPECT_EQ(logged(kLogger, 8), Words{"ready"});
  role_->storage_connected(kOne, out_);
  words();
  EXPECT_EQ(hear(kOne, StorageOpened{kVolume, kEpoch, {10}, {10}}), Words{"drop image 1: corrupt"});
  EXPECT_EQ(submit(1), Words{"failed 1"});
}

// Both had not begun yet: what began the epoch may be in one of them alone.
TEST_F(CoordinatorLogsTest, AJournalThatHasNothingIsUsedWhereNothingWasWritten) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(112, 90));
  EXPECT_EQ(hear_log(kTwo, opened(100, 90)), (Words{"void 113-120 to 1", "void 101-120 to 2"}));
}

TEST_F(CoordinatorLogsTest, AWriteIsAcknowledgedWhenBothJournalsHaveIt) {
  serve_away();
  EXPECT_EQ(submit(1), (Words{"log 113 to 1", "log 113 to 2"}));
  EXPECT_EQ(logged(kOne, 113), Words{});
  EXPECT_EQ(logged(kTwo, 113), Words{"done 1"});
}

TEST_F(CoordinatorLogsTest, AJournalThatReturnsIsSentWhatItLacks) {
  serve_away();
  submit(1);
  submit(2);
  logged(kOne, 114);
  lose_log(kTwo);
  submit(3);
  connect_log(kTwo);
  EXPECT_EQ(hear_log(kTwo, opened(113, 113)), (Words{"log 114 to 2", "log 115 to 2", "done 1"}));
  EXPECT_EQ(logged(kTwo, 115), Words{"done 2"});
  EXPECT_EQ(logged(kOne, 115), Words{"done 3"});
}

TEST_F(CoordinatorLogsTest, AJournalThatCouldNotKeepAWriteIsNotUsed) {
  serve_away();
  submit(1);
  EXPECT_EQ(hear_log(kTwo, LogFailed{kVolume, kEpoch, {113}, {ErrorCode::kNoSpace, "full"}}),
            Words{"drop log 2: no-space"});
  EXPECT_EQ(logged(kOne, 113), Words{}) << "the other one alone does not count";
  connect_log(kTwo);
  EXPECT_EQ(hear_log(kTwo, opened(113, 113, {{{113}, {113}}})), Words{"drop log 2: io"});
  connect_log(kTwo);
  EXPECT_EQ(hear_log(kTwo, opened(112, 90)), Words{"log 113 to 2"}) << "it was restarted";
  EXPECT_EQ(logged(kTwo, 113), Words{"done 1"});
}

TEST_F(CoordinatorLogsTest, AJournalThatLacksWhatWasAcknowledgedIsNotUsed) {
  serve_away();
  submit(1);
  logged(kOne, 113);
  logged(kTwo, 113);
  lose_log(kTwo);
  connect_log(kTwo);
  EXPECT_EQ(hear_log(kTwo, opened(112, 90)), Words{"drop log 2: corrupt"});
}

}  // namespace
}  // namespace mariner::replication
