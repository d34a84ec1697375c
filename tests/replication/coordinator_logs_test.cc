// The coordinator's side towards the logs, when the logger goes and returns. With the logger there:
// coordinator_role_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "replication/coordinator_role.h"
#include "tests/replication/role_actions.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;
constexpr VolumeId kVolume{1};
constexpr Epoch kEpoch{5};
constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};
constexpr NodeId kLogger{3};
constexpr std::uint64_t kMargin = 8;
constexpr VersionTime kNow{100'000'000};
constexpr LogAway kAway{{100}, {104}, {5000}, {99}};
using Words = std::vector<std::string>;

class CoordinatorLogsTest : public ::testing::Test {
 protected:
  using Actions = CoordinatorRole::Actions;

  void make(std::optional<LogAway> away) {
    role_.emplace(CoordinatorRole::Start{kVolume, kEpoch, {kOne, kTwo}, kOne, kLogger, away},
                  CoordinatorRole::Options{.limits = {.writes_in_flight_max = kMargin},
                                           .void_margin = kMargin,
                                           .logger_patience = 3s,
                                           .return_near = 2});
  }
  static std::string to(NodeId node) { return " to " + std::to_string(node.value); }
  static std::string word(const CoordinatorRole::ToLog& log) {
    const auto& message = log.message;
    if (const auto* open = std::get_if<OpenLog>(&message)) {
      return "open log from " + std::to_string(open->begin.value) + to(log.node);
    }
    if (const auto* lost = std::get_if<VoidMessage>(&message)) {
      return "void " + std::to_string(lost->first.value) + "-" + std::to_string(lost->last.value) +
             to(log.node);
    }
    if (const auto* write = std::get_if<WriteMessage>(&message)) {
      const std::string number = std::to_string(write->stamp.sequence.value);
      if (write->write.kind != WriteKind::kRollback) return "log " + number + to(log.node);
      return "back to " + std::to_string(write->write.target.value) + " as " + number +
             to(log.node);
    }
    if (const auto* anew = std::get_if<BeginAnew>(&message)) {
      return "begin behind " + std::to_string(anew->at.value) + to(log.node);
    }
    return "other" + to(log.node);
  }
  static std::string word(const CoordinatorRole::Action& action) {
    if (const auto* log = std::get_if<CoordinatorRole::ToLog>(&action)) return word(*log);
    if (const auto* store = std::get_if<CoordinatorRole::ToStore>(&action)) {
      if (const auto* open = std::get_if<OpenStorage>(&store->message)) {
        return (open->away_since ? "open away since " + std::to_string(open->away_since->value)
                                 : "open") +
               to(store->node);
      }
      if (const auto* harden = std::get_if<Harden>(&store->message)) {
        return "harden " + std::to_string(harden->settled.value) + to(store->node);
      }
      if (const auto* lost = std::get_if<LogLost>(&store->message)) {
        return "lost since " + std::to_string(lost->since.value) + to(store->node);
      }
      return "";
    }
    if (const auto* fetch = std::get_if<CoordinatorRole::FetchLogged>(&action)) {
      return "fetch " + std::to_string(fetch->from.value) + "-" + std::to_string(fetch->to.value);
    }
    if (const auto* change = std::get_if<CoordinatorRole::ChangeLogs>(&action)) {
      if (!change->away) return "back with the logger";
      return "away since " + std::to_string(change->away->since.value) + ", used " +
             std::to_string(change->away->used.value);
    }
    if (const auto* gone = std::get_if<CoordinatorRole::DisconnectLogger>(&action)) {
      return "drop log " + std::to_string(gone->node.value) + ": " +
             std::string(error_code_name(gone->why.code));
    }
    if (std::holds_alternative<CoordinatorRole::Ready>(action)) return "ready";
    if (const auto* answer = std::get_if<Answer>(&action)) {
      return (answer->result ? "done " : "failed ") + std::to_string(answer->token.value);
    }
    return "";
  }
  Words words() {
    Words words;
    for (const auto& action : out_) {
      if (std::string one = word(action); !one.empty()) words.push_back(std::move(one));
    }
    out_.clear();
    return words;
  }
  Words connect_log(NodeId node) {
    role_->logger_connected(node, out_);
    return words();
  }
  Words lose_log(NodeId node) {
    role_->logger_disconnected(node, kNow, out_);
    return words();
  }
  Words hear_log(NodeId node, FromLogger message) {
    role_->received(node, std::move(message), kNow, out_);
    return words();
  }
  Words logged(NodeId node, std::uint64_t through) {
    return hear_log(node, Logged{kVolume, kEpoch, {through}});
  }
  Words hear(NodeId node, const FromStorage& message) {
    role_->received(node, message, kNow, out_);
    return words();
  }
  Words hardened(NodeId node, std::uint64_t settled, std::optional<Error> failed = {}) {
    return hear(node, Hardened{kVolume, kEpoch, {settled}, std::move(failed)});
  }
  Words submit(std::uint64_t token) {
    WriteRequest request;
    request.kind = WriteKind::kZero;
    request.extent = {{0}, {1}};
    role_->submit({token}, std::move(request), kNow, out_);
    return words();
  }
  Words tick(std::chrono::nanoseconds now) {
    role_->tick(kNow, now, out_);
    return words();
  }
  static LogOpened opened(std::uint64_t last, std::uint64_t end,
                          std::vector<SequenceRange> holes = {}) {
    return {kVolume, kEpoch, {last}, std::move(holes), {5000}, {}, {end}};
  }
  void open_storages() {
    for (const NodeId node : {kOne, kTwo}) {
      role_->storage_connected(node, out_);
      hear(node, StorageOpened{kVolume, kEpoch, {10}, {10}});
      hear(node, CaughtUp{kVolume, kEpoch, role_->writes().settled()});
      hear(node, StorageProgress{kVolume, kEpoch, role_->settled(), {10}, 1u << 30});
    }
    words();
  }
  // With the logger; the next write is #19.
  void serve() {
    make(std::nullopt);
    connect_log(kLogger);
    hear_log(kLogger, opened(10, 10));
    logged(kLogger, 10 + kMargin);
    ASSERT_TRUE(role_->ready());
    open_storages();
  }
  // With journals that have the same; the next write is #113.
  void serve_away() {
    make(kAway);
    connect_log(kOne);
    connect_log(kTwo);
    hear_log(kOne, opened(100, 90));
    hear_log(kTwo, opened(100, 90));
    logged(kOne, 112);
    logged(kTwo, 112);
    ASSERT_TRUE(role_->ready());
    open_storages();
  }

  std::optional<CoordinatorRole> role_;
  Actions out_;
};

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
  EXPECT_EQ(tick(20s), Words{});
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

TEST_F(CoordinatorLogsTest, AStorageThatGoesWhileItHardensIsWaitedFor) {
  serve();
  lose_log(kLogger);
  tick(10s);
  tick(13s);
  hardened(kOne, 18);
  role_->storage_disconnected(kTwo, kNow, out_);
  EXPECT_EQ(hardened(kTwo, 18), Words{});
}

// ---- without it

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

}  // namespace
}  // namespace mariner::replication
