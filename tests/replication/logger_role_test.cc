#include "replication/logger_role.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/replication/role_actions.h"

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{1};
constexpr ConnectionId kFirst{1};
constexpr ConnectionId kSecond{2};

WriteMessage write_of(std::uint64_t sequence, std::uint64_t epoch = 5) {
  WriteMessage message;
  message.volume = kVolume;
  message.stamp = {{epoch}, {sequence}, {1000 + sequence}};
  message.write.extent = {{0}, {1}};
  return message;
}

class LoggerRoleTest : public ::testing::Test {
 protected:
  LoggerRole::Actions hear(ConnectionId from, ToLogger message) {
    LoggerRole::Actions out;
    role_->received(from, std::move(message), out);
    return out;
  }
  LoggerRole::Actions promised(std::uint64_t epoch, const Result<void>& result = {}) {
    LoggerRole::Actions out;
    role_->promised({{epoch}, {}}, result, out);
    return out;
  }
  LoggerRole::Actions appended(std::uint64_t sequence, const Result<void>& result = {}) {
    LoggerRole::Actions out;
    role_->appended({sequence}, result, out);
    return out;
  }
  LoggerRole::Actions flush() {
    LoggerRole::Actions out;
    role_->flush(out);
    return out;
  }
  void open(ConnectionId connection, std::uint64_t epoch = 5) {
    hear(connection, OpenLog{kVolume, {epoch}});
    ASSERT_TRUE(sent<LogOpened>(promised(epoch)).has_value());
  }
  std::optional<std::uint64_t> through() {
    const auto logged = sent<Logged>(flush());
    if (!logged) return std::nullopt;
    return logged->through.value;
  }

  void begin_with(std::vector<SequenceRange> holes) {
    role_.emplace(LoggerRole::Start{kVolume, {4}, {10}, {1010}, {1500}, {7}, std::move(holes)});
  }
  void lose(std::uint64_t first, std::uint64_t last) {
    const VoidMessage message{kVolume, {5}, {first}, {last}};
    ASSERT_TRUE(only<LoggerRole::AppendVoid>(hear(kFirst, message)).has_value());
    LoggerRole::Actions out;
    role_->void_appended({{first}, {last}}, {}, out);
  }

  std::optional<LoggerRole> role_{LoggerRole({kVolume, {4}, {10}, {1010}, {1500}, {7}})};
};

TEST_F(LoggerRoleTest, AnEpochIsPromisedBeforeItIsOpen) {
  const auto actions = hear(kFirst, OpenLog{kVolume, {5}});
  const auto promise = only<LoggerRole::Promise>(actions);
  ASSERT_TRUE(promise.has_value());
  EXPECT_EQ(promise->epoch, Epoch{5});
  EXPECT_EQ(promise->floor, VersionTime{1500});
  EXPECT_EQ(actions.size(), 1u);
  EXPECT_TRUE(sent<Refused>(hear(kFirst, write_of(11))).has_value()) << "not open yet";
  hear(kFirst, OpenLog{kVolume, {5}});
  const auto opened = sent<LogOpened>(promised(5));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->last, SequenceNumber{10});
  EXPECT_EQ(opened->floor, VersionTime{1500});
  EXPECT_EQ(opened->frontier, SequenceNumber{7});
  EXPECT_TRUE(opened->holes.empty());
}

TEST_F(LoggerRoleTest, APromiseThatFailsOpensNothingAndIsTriedAgain) {
  hear(kFirst, OpenLog{kVolume, {5}});
  const auto failed = promised(5, Error{ErrorCode::kIo, "broken"});
  EXPECT_FALSE(sent<LogOpened>(failed).has_value());
  const auto refused = sent<Refused>(failed);
  ASSERT_TRUE(refused.has_value()) << "who waits would wait for ever";
  EXPECT_EQ(refused->promised, Epoch{5}) << "which ends nobody's epoch";
  EXPECT_EQ(refused->error.code, ErrorCode::kIo);
  EXPECT_TRUE(sent<Refused>(hear(kFirst, write_of(11))).has_value());
  EXPECT_EQ(sent<Refused>(hear(kFirst, OpenLog{kVolume, {4}}))->error.code, ErrorCode::kStaleEpoch);
  const auto again = only<LoggerRole::Promise>(hear(kSecond, OpenLog{kVolume, {5}}));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->epoch, Epoch{5});
  EXPECT_TRUE(sent<LogOpened>(promised(5)).has_value());
}

// Nobody is told who is gone; who comes then has it promised anew.
TEST_F(LoggerRoleTest, APromiseThatFailsWhenItsCoordinatorIsGoneIsTriedAgain) {
  hear(kFirst, OpenLog{kVolume, {5}});
  role_->disconnected(kFirst);
  EXPECT_TRUE(promised(5, Error{ErrorCode::kIo, "broken"}).empty());
  EXPECT_TRUE(only<LoggerRole::Promise>(hear(kSecond, OpenLog{kVolume, {5}})).has_value());
  hear(kFirst, OpenLog{kVolume, {6}});
  EXPECT_TRUE(promised(5, Error{ErrorCode::kIo, "broken"}).empty()) << "of an epoch that is over";
  EXPECT_TRUE(sent<LogOpened>(promised(6)).has_value());
}

TEST_F(LoggerRoleTest, AnOlderEpochIsRefusedAndTheOneBeforeIsTold) {
  open(kFirst);
  const auto stale = sent<Refused>(hear(kSecond, OpenLog{kVolume, {4}}));
  ASSERT_TRUE(stale.has_value());
  EXPECT_EQ(stale->promised, Epoch{5});
  EXPECT_EQ(stale->error.code, ErrorCode::kStaleEpoch);
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kFirst, write_of(11))).has_value()) << "still heard";

  const auto actions = hear(kSecond, OpenLog{kVolume, {6}});
  EXPECT_TRUE(only<LoggerRole::Promise>(actions).has_value());
  const auto displaced = only<LoggerRole::Send>(actions);
  ASSERT_TRUE(displaced.has_value());
  EXPECT_EQ(displaced->to, kFirst);
  EXPECT_EQ(std::get<Refused>(displaced->message).promised, Epoch{6});
  EXPECT_TRUE(sent<Refused>(hear(kFirst, write_of(12))).has_value());
}

TEST_F(LoggerRoleTest, AcknowledgesInTheOrderOfNumbers) {
  open(kFirst);
  for (std::uint64_t s = 11; s <= 13; ++s) {
    EXPECT_TRUE(only<LoggerRole::Append>(hear(kFirst, write_of(s))).has_value());
  }
  appended(12);
  EXPECT_EQ(through(), std::nullopt);
  appended(11);
  EXPECT_EQ(through(), 12u);
  EXPECT_EQ(through(), std::nullopt) << "once";
  appended(13);
  EXPECT_EQ(through(), 13u);
}

TEST_F(LoggerRoleTest, WhatFailedIsToldAndHoldsUpTheOthersUntilItIsVoid) {
  open(kFirst);
  hear(kFirst, write_of(11));
  hear(kFirst, write_of(12));
  const auto failed = sent<LogFailed>(appended(11, Error{ErrorCode::kNoSpace, "full"}));
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->sequence, SequenceNumber{11});
  appended(12);
  EXPECT_EQ(through(), std::nullopt);
  EXPECT_TRUE(only<LoggerRole::AppendVoid>(hear(kFirst, VoidMessage{kVolume, {5}, {11}, {11}}))
                  .has_value());
  LoggerRole::Actions out;
  role_->void_appended({{11}, {11}}, {}, out);
  EXPECT_EQ(through(), 12u);
}

TEST_F(LoggerRoleTest, NothingIsUnderWayWhenTheLogIsOpenForTheNext) {
  open(kFirst);
  hear(kFirst, write_of(11));
  hear(kFirst, write_of(12));
  hear(kSecond, OpenLog{kVolume, {6}});
  EXPECT_TRUE(promised(6).empty()) << "two are under way";
  appended(12);
  const auto opened = sent<LogOpened>(appended(11, Error{ErrorCode::kIo, "broken"}));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->epoch, Epoch{6});
  EXPECT_EQ(opened->last, SequenceNumber{12});
  ASSERT_EQ(opened->holes.size(), 1u);
  EXPECT_EQ(opened->holes[0], (SequenceRange{{11}, {11}}));
}

TEST_F(LoggerRoleTest, BeginsWithHolesAndTellsThem) {
  begin_with({{{3}, {4}}, {{6}, {6}}, {{9}, {10}}});
  EXPECT_EQ(role_->settled(), SequenceNumber{2});
  hear(kFirst, OpenLog{kVolume, {5}});
  const auto opened = sent<LogOpened>(promised(5));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->last, SequenceNumber{10});
  EXPECT_EQ(opened->holes, (std::vector<SequenceRange>{{{3}, {4}}, {{6}, {6}}, {{9}, {10}}}));
  EXPECT_EQ(through(), std::nullopt) << "what is settled below the first one is no news";
}

TEST_F(LoggerRoleTest, HolesThatItBeganWithAreSettledWhenTheyAreVoid) {
  begin_with({{{3}, {4}}, {{6}, {6}}, {{9}, {10}}});
  open(kFirst);
  lose(6, 6);
  EXPECT_EQ(through(), std::nullopt) << "one is below";
  lose(3, 4);
  EXPECT_EQ(through(), 8u) << "what is between the holes is durable";
  EXPECT_TRUE(sent<Refused>(hear(kSecond, OpenLog{kVolume, {4}})).has_value());
  lose(9, 10);
  lose(11, 18);
  EXPECT_EQ(through(), 18u);
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kFirst, write_of(19))).has_value());
}

// As a journal that was long not in use begins.
TEST_F(LoggerRoleTest, ManyNumbersAreVoidedAtTheCostOfOne) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 50;
  open(kFirst);
  const VoidMessage unused{kVolume, {5}, {11}, {kMany}};
  ASSERT_TRUE(only<LoggerRole::AppendVoid>(hear(kFirst, unused)).has_value());
  LoggerRole::Actions out;
  role_->void_appended({{11}, {kMany}}, Error{ErrorCode::kIo, "the disk"}, out);
  ASSERT_TRUE(sent<Refused>(out).has_value());
  hear(kSecond, OpenLog{kVolume, {6}});
  const auto opened = sent<LogOpened>(promised(6));
  EXPECT_EQ(opened->last, SequenceNumber{kMany});
  EXPECT_EQ(opened->holes, (std::vector<SequenceRange>{{{11}, {kMany}}}));
  ASSERT_TRUE(only<LoggerRole::AppendVoid>(hear(kSecond, VoidMessage{kVolume, {6}, {11}, {kMany}}))
                  .has_value());
  out.clear();
  role_->void_appended({{11}, {kMany}}, {}, out);
  EXPECT_EQ(through(), kMany);
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kSecond, write_of(kMany + 1, 6))).has_value());
}

TEST_F(LoggerRoleTest, AHoleThatItBeganWithIsVoidedOnceAndNothingBesideIt) {
  for (const auto& [first, last] : {std::pair(2, 3), std::pair(4, 5), std::pair(2, 5)}) {
    begin_with({{{3}, {4}}});
    open(kFirst);
    const VoidMessage message{
        kVolume, {5}, {static_cast<std::uint64_t>(first)}, {static_cast<std::uint64_t>(last)}};
    EXPECT_TRUE(sent<Refused>(hear(kFirst, message)).has_value()) << first << " to " << last;
  }
  begin_with({{{3}, {4}}});
  open(kFirst);
  lose(3, 4);
  EXPECT_EQ(through(), 10u);
  EXPECT_TRUE(sent<Refused>(hear(kFirst, VoidMessage{kVolume, {5}, {3}, {4}})).has_value());
}

TEST_F(LoggerRoleTest, AHoleFromTheFirstNumberOnLeavesNothingSettled) {
  begin_with({{{1}, {10}}});
  EXPECT_EQ(role_->settled(), SequenceNumber{0});
  open(kFirst);
  lose(1, 10);
  EXPECT_EQ(through(), 10u);
}

TEST_F(LoggerRoleTest, NumbersFollowOneAnother) {
  open(kFirst);
  const auto refused = [this](const ToLogger& message) {
    role_->disconnected(kFirst);
    hear(kFirst, OpenLog{kVolume, {5}});
    return sent<Refused>(hear(kFirst, message)).has_value();
  };
  EXPECT_TRUE(refused(write_of(12)));
  EXPECT_TRUE(refused(write_of(10)));
  EXPECT_TRUE(refused(write_of(11, 4)));
  EXPECT_TRUE(refused(write_of(11, 6)));
  WriteMessage early = write_of(11);
  early.stamp.time = {1010};
  EXPECT_TRUE(refused(early));
  EXPECT_TRUE(refused(VoidMessage{kVolume, {5}, {10}, {10}})) << "it is durable";
  EXPECT_TRUE(refused(VoidMessage{kVolume, {5}, {12}, {13}}));
  EXPECT_TRUE(refused(VoidMessage{kVolume, {5}, {12}, {11}}));
  EXPECT_TRUE(refused(FrontierMessage{kVolume, {5}, {11}}));
  EXPECT_TRUE(refused(FrontierMessage{kVolume, {5}, {10}, {11}}));
  EXPECT_FALSE(refused(VoidMessage{kVolume, {5}, {11}, {20}}));
}

TEST_F(LoggerRoleTest, WhoIsHeardIsToldThatRoomIsWanted) {
  LoggerRole::Actions out;
  role_->want_room(out);
  EXPECT_TRUE(out.empty()) << "nobody is";
  open(kFirst);
  role_->want_room(out);
  EXPECT_EQ(sent<RoomWanted>(out)->epoch, Epoch{5});
}

TEST_F(LoggerRoleTest, AFloorIsDurableBeforeItIsToldAndOutlivesTheEpoch) {
  open(kFirst);
  const auto promise = only<LoggerRole::Promise>(hear(kFirst, RaiseFloor{kVolume, {5}, {9000}}));
  ASSERT_TRUE(promise.has_value());
  EXPECT_EQ(promise->floor, VersionTime{9000});
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kFirst, write_of(11))).has_value())
      << "it was stamped before";
  LoggerRole::Actions out;
  role_->promised(*promise, {}, out);
  const auto raised = sent<FloorRaised>(out);
  ASSERT_TRUE(raised.has_value());
  EXPECT_EQ(raised->time, VersionTime{9000});
  appended(11);
  hear(kSecond, OpenLog{kVolume, {6}});
  const auto opened = sent<LogOpened>(promised(6));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->floor, VersionTime{9000});
}

// ---- all that it had is lost

class LostLogTest : public LoggerRoleTest {
 protected:
  LostLogTest() { role_.emplace(LoggerRole::Start{kVolume, {}, {}, {}, {}, {}}); }
  LoggerRole::Actions begin(std::uint64_t at, std::uint64_t epoch = 5) {
    return hear(kFirst, BeginAnew{kVolume, {epoch}, {at}, {3000}});
  }
  LoggerRole::Actions begun(std::uint64_t at, const Result<void>& result = {}) {
    LoggerRole::Actions out;
    role_->begun_anew({{at}, {3000}}, result, out);
    return out;
  }
};

TEST_F(LostLogTest, ItsHistoryBeginsAnewWhereItIsToldTo) {
  open(kFirst);
  const auto beginning = only<LoggerRole::BeginHistory>(begin(100));
  ASSERT_TRUE(beginning.has_value());
  EXPECT_EQ(beginning->at, SequenceNumber{100});
  EXPECT_EQ(beginning->time, VersionTime{3000});
  EXPECT_EQ(through(), std::nullopt) << "it is not on stable storage";
  EXPECT_FALSE(role_->idle());
  EXPECT_TRUE(begun(100).empty());
  EXPECT_EQ(through(), 100u);
  EXPECT_EQ(role_->frontier(), SequenceNumber{100});
  WriteMessage early = write_of(101);
  early.stamp.time = {3000};
  EXPECT_TRUE(sent<Refused>(hear(kFirst, early)).has_value()) << "no write is at that time";
  hear(kSecond, OpenLog{kVolume, {6}});
  const auto opened = sent<LogOpened>(promised(6));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->last, SequenceNumber{100});
  EXPECT_EQ(opened->end, SequenceNumber{100});
  EXPECT_EQ(opened->floor, VersionTime{3000});
  WriteMessage next = write_of(101, 6);
  next.stamp.time = {3001};
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kSecond, next)).has_value());
}

TEST_F(LostLogTest, WhatCannotBeKeptHasNotBegun) {
  open(kFirst);
  begin(100);
  EXPECT_EQ(sent<Refused>(begun(100, Error{ErrorCode::kIo, "the store is full"}))->error.code,
            ErrorCode::kIo);
  hear(kSecond, OpenLog{kVolume, {6}});
  EXPECT_EQ(sent<LogOpened>(promised(6))->last, SequenceNumber{0});
}

TEST_F(LostLogTest, NothingComesBeforeItHasBegun) {
  open(kFirst);
  begin(1);
  const auto refused = sent<Refused>(hear(kFirst, write_of(1)));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->error.code, ErrorCode::kProtocol);
  begun(1);
  EXPECT_EQ(role_->settled(), SequenceNumber{1});
  hear(kSecond, OpenLog{kVolume, {5}});
  WriteMessage next = write_of(2);
  next.stamp.time = {3001};
  EXPECT_TRUE(only<LoggerRole::Append>(hear(kSecond, next)).has_value());
}

TEST_F(LostLogTest, VoidsAreNothingThatCouldBeKept) {
  open(kFirst);
  lose(1, 8);
  EXPECT_TRUE(only<LoggerRole::BeginHistory>(begin(100)).has_value());
  begun(100);
  EXPECT_EQ(through(), 100u);
}

TEST_F(LostLogTest, WhoHasSomethingDoesNotBeginAnew) {
  open(kFirst);
  EXPECT_TRUE(sent<Refused>(begin(100, 4)).has_value()) << "of another epoch";
  role_.emplace(LoggerRole::Start{kVolume, {}, {}, {}, {}, {}});
  open(kFirst);
  hear(kFirst, write_of(1));
  EXPECT_TRUE(sent<Refused>(begin(100)).has_value());
  role_.emplace(LoggerRole::Start{kVolume, {}, {10}, {1010}, {1500}, {7}, {}, {9}});
  open(kFirst);
  EXPECT_TRUE(sent<Refused>(begin(100)).has_value());
}

}  // namespace
}  // namespace mariner::replication
