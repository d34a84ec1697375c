// The logger goes, and returns.
#include <chrono>

#include "replication/coordinator_role.h"
#include "tests/replication/coordinator_logs_fixture.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

// ---- it goes

TEST_F(CoordinatorLogsTest, ALoggerThatStaysAwayIsGoneWithoutWhenBothStoragesHaveEverything) {
  serve();
  submit(1);
  lose_log(kLogger);
  EXPECT_EQ(tick(10s), Words{});
  EXPECT_EQ(tick(12s), Words{}) << "patience";
  EXPECT_EQ(tick(13s), (Words{"harden 18 to 1", "harden 18 to 2"}));
  EXPECT_EQ(tick(14s), Words{});
  EXPECT_EQ(hardened(kOne, 18), Words{});
  EXPECT_EQ(hardened(kTwo, 18), Words{"away since 18, used 19"});
  EXPECT_EQ(submit(2), Words{"failed 2"}) << "not stamped in this epoch any more";
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(19, 19)), Words{}) << "nor acknowledged";
}

TEST_F(CoordinatorLogsTest, ALoggerThatReturnsInTimeIsUsed) {
  serve();
  submit(1);
  lose_log(kLogger);
  tick(10s);
  EXPECT_EQ(tick(13s).size(), 2U);
  hardened(kOne, 18);
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(19, 19)), Words{"done 1"});
  EXPECT_EQ(hardened(kTwo, 18), Words{}) << "too late";
  EXPECT_EQ(tick(20s), Words{"other to 3"}) << "the frontier, which it does not know any more";
  EXPECT_EQ(tick(21s), Words{});
}

// What both were asked to make durable is not all that is settled any more.
TEST_F(CoordinatorLogsTest, ALoggerThatIsBackForAMomentIsGoneWithoutLater) {
  serve();
  submit(1);
  lose_log(kLogger);
  tick(10s);
  EXPECT_EQ(tick(13s), (Words{"harden 18 to 1", "harden 18 to 2"}));
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(19, 19)), Words{"done 1"});
  lose_log(kLogger);
  hardened(kOne, 18);
  EXPECT_EQ(hardened(kTwo, 18), Words{});
  EXPECT_EQ(tick(14s), Words{}) << "patience begins anew";
  EXPECT_EQ(tick(17s), (Words{"harden 19 to 1", "harden 19 to 2"}));
  hardened(kOne, 19);
  EXPECT_EQ(hardened(kTwo, 19), Words{"away since 19, used 19"});
}

TEST_F(CoordinatorLogsTest, AStorageThatCannotIsAskedAgain) {
  serve();
  lose_log(kLogger);
  tick(10s);
  tick(13s);
  hardened(kOne, 18);
  EXPECT_EQ(hardened(kTwo, 18, Error{ErrorCode::kUnavailable, "not yet"}), Words{});
  EXPECT_EQ(tick(14s), Words{});
  EXPECT_EQ(tick(15s), (Words{"harden 18 to 1", "harden 18 to 2"}));
  hardened(kTwo, 18);
  EXPECT_EQ(hardened(kOne, 18), Words{"away since 18, used 18"});
}

TEST_F(CoordinatorLogsTest, WithoutBothStoragesWritesWait) {
  serve();
  lose_log(kLogger);
  role_->storage_disconnected(kTwo, kNow, out_);
  words();
  tick(10s);
  EXPECT_EQ(tick(20s), Words{});
}

// There is no number yet from which the journals would count.
TEST_F(CoordinatorLogsTest, BeforeAnythingIsSettledTheLoggerIsWaitedFor) {
  role_.emplace(CoordinatorRole::Start{kVolume, {1}, {kOne, kTwo}, kOne, kLogger, std::nullopt},
                CoordinatorRole::Options{.logger_patience = 3s});
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, LogOpened{kVolume, {1}, {}, {}, {}, {}, {}}), Words{"ready"});
  for (const NodeId node : {kOne, kTwo}) {
    role_->storage_connected(node, out_);
    hear(node, StorageOpened{kVolume, {1}, {}, {}});
    hear(node, CaughtUp{kVolume, {1}, {}});
  }
  lose_log(kLogger);
  tick(10s);
  EXPECT_EQ(tick(20s), Words{});
}

TEST_F(CoordinatorLogsTest, AStorageThatGoesWhileItHardensIsWaitedFor) {
  serve();
  lose_log(kLogger);
  tick(10s);
  tick(13s);
  hardened(kOne, 18);
  role_->storage_disconnected(kTwo, kNow, out_);
  EXPECT_EQ(hardened(kTwo, 18), Words{});
}

// ---- it returns

TEST_F(CoordinatorLogsTest, TheLoggerTakesOverWhenItHasEverything) {
  serve_away();
  submit(1);
  submit(2);
  logged(kOne, 114);
  logged(kTwo, 114);
  EXPECT_EQ(connect_log(kLogger), Words{"open log from 0 to 3"});
  EXPECT_EQ(hear_log(kLogger, opened(105, 100)), Words{"fetch 105-114"});
  submit(3);
  LogSource::Portion portion;
  portion.through = {112};
  role_->fetched(portion, out_);
  EXPECT_EQ(words(), Words{"void 106-112 to 3"});
  EXPECT_EQ(logged(kLogger, 112), Words{"fetch 112-114"}) << "so near that nothing else is settled";
  logged(kOne, 115);
  EXPECT_EQ(logged(kTwo, 115), Words{});
  portion.through = {114};
  role_->fetched(portion, out_);
  words();
  EXPECT_EQ(logged(kLogger, 114), Words{"back with the logger"});
  EXPECT_EQ(logged(kTwo, 115), Words{});
  EXPECT_EQ(role_->settled(), SequenceNumber{114}) << "in this epoch";
}

TEST_F(CoordinatorLogsTest, ALoggerThatGoesAgainHoldsNothingUp) {
  serve_away();
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(105, 100)), Words{"fetch 105-112"});
  LogSource::Portion portion;
  portion.through = {111};
  role_->fetched(portion, out_);
  words();
  logged(kLogger, 111);
  submit(1);
  logged(kOne, 113);
  EXPECT_EQ(logged(kTwo, 113), Words{}) << "held back for it";
  EXPECT_EQ(lose_log(kLogger), Words{"done 1"});
}

TEST_F(CoordinatorLogsTest, ANewerEpochThatTheReturningLoggerKnowsOfEndsThisOne) {
  serve_away();
  connect_log(kLogger);
  hear_log(kLogger, Refused{kVolume, {9}, {ErrorCode::kStaleEpoch, "over"}});
  EXPECT_TRUE(role_->superseded());
}

TEST_F(CoordinatorLogsTest, ALoggerThatHasLostItsLogBeginsAnewWhenBothImagesHoldWhatItHeld) {
  serve_away();
  connect_log(kLogger);
  EXPECT_EQ(hear_log(kLogger, opened(0, 0)), Words{});
  role_->storage_disconnected(kTwo, kNow, out_);
  EXPECT_EQ(tick(10s), Words{"lost since 100 to 1"});
  EXPECT_EQ(tick(11s), Words{}) << "once";
  const auto holds = [&](NodeId node, std::uint64_t durable) {
    return hear(node, StorageProgress{kVolume, kEpoch, role_->settled(), {durable}, 1u << 30});
  };
  holds(kOne, 100);
  EXPECT_EQ(tick(12s), Words{}) << "the other one is away";
  role_->storage_connected(kTwo, out_);
  hear(kTwo, StorageOpened{kVolume, kEpoch, {100}, {10}});
  hear(kTwo, CaughtUp{kVolume, kEpoch, role_->settled()});
  words();
  EXPECT_EQ(tick(13s), Words{"lost since 100 to 2"});
  holds(kTwo, 100);
  EXPECT_EQ(tick(14s), Words{"begin behind 100 to 3"});
  EXPECT_EQ(tick(15s), Words{});
  EXPECT_EQ(logged(kLogger, 100), Words{"void 101-105 to 3"});
  EXPECT_EQ(logged(kLogger, 105), Words{"fetch 105-112"});
}

// As a returning logger is to know whether it has something of its own.
TEST_F(CoordinatorLogsTest, WhatTheLogEndsWithIsWrittenIntoTheRecord) {
  serve();
  submit(1);
  logged(kLogger, 19);
  lose_log(kLogger);
  tick(10s);
  tick(13s);
  hardened(kOne, 19);
  role_->received(kTwo, Hardened{kVolume, kEpoch, {19}, {}}, kNow, out_);
  std::optional<LogAway> away;
  for (const auto& action : out_) {
    if (const auto* change = std::get_if<CoordinatorRole::ChangeLogs>(&action)) away = change->away;
  }
  ASSERT_TRUE(away.has_value());
  EXPECT_EQ(away->since, SequenceNumber{19});
  EXPECT_EQ(away->end, SequenceNumber{19});
}

// Its image is all that is left, too.
TEST_F(CoordinatorLogsTest, WithOneJournalLeftALostLogBeginsAnewFromItsImage) {
  make(kAway);
  connect_log(kOne);
  connect_log(kTwo);
  hear_log(kOne, opened(205, 205));
  hear_log(kTwo, opened(100, 0));
  logged(kOne, 213);
  open_storages();
  connect_log(kLogger);
  hear_log(kLogger, opened(0, 0));
  EXPECT_EQ(tick(10s), Words{"lost since 100 to 1"});
  hear(kOne, StorageProgress{kVolume, kEpoch, role_->settled(), {100}, 1u << 30});
  EXPECT_EQ(tick(11s), Words{"begin behind 100 to 3"});
}

// Nothing of what that node's image lacks can be told it any more, but by the other image.
TEST_F(CoordinatorLogsTest, AnImageThatLacksWhatALostLogHeldHoldsNoNewHistoryUp) {
  serve_away();
  role_->storage_disconnected(kTwo, kNow, out_);
  role_->storage_connected(kTwo, out_);
  words();
  EXPECT_EQ(hear(kTwo, StorageOpened{kVolume, kEpoch, {}, {}}), Words{"drop image 2: unavailable"});
  EXPECT_FALSE(role_->caught_up(kTwo));
  connect_log(kLogger);
  hear_log(kLogger, opened(0, 0));
  EXPECT_EQ(tick(10s), Words{"lost since 100 to 1"});
  hear(kOne, StorageProgress{kVolume, kEpoch, role_->settled(), {100}, 1u << 30});
  EXPECT_EQ(tick(11s), Words{"begin behind 100 to 3"});
}

// A log that is away gives nothing up.
TEST_F(CoordinatorLogsTest, WhileTheLoggerIsAwayNoImageIsGivenUp) {
  serve_away();
  hear(kOne, StorageProgress{kVolume, kEpoch, role_->settled(), {100}, 1u << 30});
  role_->storage_disconnected(kTwo, kNow, out_);
  tick(0s);
  tick(7200s);
  role_->storage_connected(kTwo, out_);
  EXPECT_EQ(words(), Words{"open away since 100 to 2"});
  hear(kTwo, StorageOpened{kVolume, kEpoch, {100}, {10}});
  hear(kTwo, CaughtUp{kVolume, kEpoch, role_->settled()});
  EXPECT_TRUE(role_->caught_up(kTwo)) << "it does not start over";
}

}  // namespace
}  // namespace mariner::replication
