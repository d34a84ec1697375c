#include "replication/coordinator_role.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/replication/coordinator_fixture.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

// A read that follows the answer, or that waited for the write to be settled, sees it.
TEST_F(CoordinatorRoleTest, TheStorageThatReadsAreServedFromCommitsBeforeTheAnswer) {
  serve();
  open_storage(kOwn);
  open_storage(kOther);
  submit(1);
  Actions settling;
  role_.settle({7}, settling);
  EXPECT_TRUE(settling.empty());
  const Actions actions = hear(Logged{kVolume, kEpoch, {19}});
  ASSERT_EQ(actions.size(), 3u);
  const auto* commit = std::get_if<CoordinatorRole::ToStore>(&actions[0]);
  ASSERT_NE(commit, nullptr);
  EXPECT_EQ(commit->node, kOwn);
  EXPECT_EQ(std::get<CommitMessage>(commit->message).settled, SequenceNumber{19});
  EXPECT_TRUE(std::holds_alternative<Answer>(actions[1]));
  EXPECT_TRUE(std::holds_alternative<Settled>(actions[2]));
  EXPECT_EQ(only<CoordinatorRole::ToStore>(flush())->node, kOther) << "the others hear later";
}

TEST_F(CoordinatorRoleTest, WhatAnOlderEpochMayHaveUsedIsVoidBeforeAnythingIsStamped) {
  EXPECT_EQ(sent<OpenLog>(logger_connected())->epoch, kEpoch);
  const Actions actions = hear(opened(10, {{{8}, {9}}}));
  EXPECT_EQ(logged_again(actions), (std::vector<std::uint64_t>{1008, 1011}));
  EXPECT_EQ(sent<VoidMessage>(actions)->last, SequenceNumber{10 + kMargin});
  EXPECT_FALSE(role_.ready());
  EXPECT_TRUE(hear(Logged{kVolume, kEpoch, {10}}).empty());
  EXPECT_TRUE(only<CoordinatorRole::Ready>(hear(Logged{kVolume, kEpoch, {18}})).has_value());
  const auto write = sent<WriteMessage>(submit(1));
  ASSERT_TRUE(write.has_value());
  EXPECT_EQ(write->stamp.sequence, SequenceNumber{19});
  EXPECT_EQ(write->stamp.epoch, kEpoch);
  EXPECT_EQ(write->settled, SequenceNumber{18});
}

TEST_F(CoordinatorRoleTest, ALoggerThatGoesWhileNumbersAreVoidedIsAskedAgain) {
  logger_connected();
  hear(opened(10));
  logger_disconnected();
  logger_connected();
  const Actions again = hear(opened(10));
  EXPECT_EQ(logged_again(again), std::vector<std::uint64_t>{1011});
  logger_disconnected();
  logger_connected();
  // It had them all.
  EXPECT_TRUE(only<CoordinatorRole::Ready>(hear(opened(18))).has_value());
}

TEST_F(CoordinatorRoleTest, TheLoggersWordAnswersInOrder) {
  serve();
  for (std::uint64_t token = 1; token <= 3; ++token) submit(token);
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {20}})), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(role_.writes().acknowledged(), SequenceNumber{20});
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {21}})), std::vector<std::uint64_t>{3});
  EXPECT_TRUE(only<CoordinatorRole::DisconnectLogger>(hear(Logged{kVolume, kEpoch, {22}})))
      << "it was not sent";
}

TEST_F(CoordinatorRoleTest, WhatTheLoggerLacksWhenItComesBackIsSentAgain) {
  serve();
  for (std::uint64_t token = 1; token <= 4; ++token) submit(token);
  logger_disconnected();
  submit(5);
  logger_connected();
  const Actions actions = hear(opened(20));
  EXPECT_EQ(answered(actions), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(logged_again(actions), (std::vector<std::uint64_t>{21, 22, 23}));
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {23}})), (std::vector<std::uint64_t>{3, 4, 5}));
}

TEST_F(CoordinatorRoleTest, AWriteThatFailsIsVoidedEverywhereAlsoWhenTheLoggerGoes) {
  serve();
  open_storage(kOther);
  hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {10}, 100 * kBlockBytes});
  for (std::uint64_t token = 1; token <= 3; ++token) submit(token);
  const Actions failed = hear(LogFailed{kVolume, kEpoch, {20}, Error{ErrorCode::kNoSpace, "full"}});
  EXPECT_EQ(answered(failed), std::vector<std::uint64_t>{1002});
  EXPECT_EQ(all_sent<VoidMessage>(failed).size(), 2u) << "the logger and a storage node";
  logger_disconnected();
  logger_connected();
  // #19 is durable, #20 failed, #21 came too late.
  const Actions actions = hear(opened(20, {{{20}, {20}}}));
  EXPECT_EQ(answered(actions), std::vector<std::uint64_t>{1});
  EXPECT_EQ(logged_again(actions), (std::vector<std::uint64_t>{1020, 21}));
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {21}})), std::vector<std::uint64_t>{3});
  EXPECT_EQ(role_.writes().settled(), SequenceNumber{21});
}

TEST_F(CoordinatorRoleTest, AFailureThatWasNotHeardOfIsFoundWhenTheLoggerComesBack) {
  serve();
  for (std::uint64_t token = 1; token <= 2; ++token) submit(token);
  logger_disconnected();
  logger_connected();
  const Actions actions = hear(opened(20, {{{19}, {19}}}));
  EXPECT_EQ(answered(actions), std::vector<std::uint64_t>{1001});
  EXPECT_EQ(logged_again(actions), std::vector<std::uint64_t>{1019});
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {20}})), std::vector<std::uint64_t>{2});
}

// A start of the logger takes back what stands behind a number that is missing.
TEST_F(CoordinatorRoleTest, WhatALoggerHasAboveAFailureIsAnsweredWhenThatIsVoid) {
  serve();
  open_storage(kOwn);
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {10}, 100 * kBlockBytes});
  for (std::uint64_t token = 1; token <= 4; ++token) submit(token);
  EXPECT_EQ(answered(hear(LogFailed{kVolume, kEpoch, {21}, Error{ErrorCode::kNoSpace, "full"}})),
            std::vector<std::uint64_t>{1003});
  logger_disconnected();
  logger_connected();
  // #21 is void there by now, above #20, which failed as well; #22 is durable.
  const Actions back = hear(opened(22, {{{20}, {20}}}));
  EXPECT_EQ(answered(back), (std::vector<std::uint64_t>{1, 1002}));
  EXPECT_EQ(role_.settled(), SequenceNumber{19});
  EXPECT_EQ(logged_again(back), std::vector<std::uint64_t>{1020}) << "what is void is so once";
  // The logger was restarted, without the void: it has taken #22 back.
  logger_disconnected();
  logger_connected();
  const Actions again = hear(opened(19));
  EXPECT_TRUE(answered(again).empty());
  EXPECT_EQ(logged_again(again), (std::vector<std::uint64_t>{1020, 1021, 22}));
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {21}})), std::vector<std::uint64_t>{});
  EXPECT_EQ(answered(hear(Logged{kVolume, kEpoch, {22}})), std::vector<std::uint64_t>{4});
  EXPECT_EQ(role_.settled(), SequenceNumber{22});
}

TEST_F(CoordinatorRoleTest, ALogThatHasLostWhatWasAcknowledgedIsNotUsed) {
  serve();
  submit(1);
  hear(Logged{kVolume, kEpoch, {19}});
  logger_disconnected();
  logger_connected();
  const auto dropped = only<CoordinatorRole::DisconnectLogger>(hear(opened(18)));
  ASSERT_TRUE(dropped.has_value());
  EXPECT_EQ(dropped->why.code, ErrorCode::kCorrupt);
}

TEST_F(CoordinatorRoleTest, ANewerEpochEndsIt) {
  serve();
  submit(1);
  const Error stale{ErrorCode::kStaleEpoch, "over"};
  EXPECT_EQ(only<CoordinatorRole::Superseded>(hear(Refused{kVolume, {6}, stale}))->by, Epoch{6});
  EXPECT_TRUE(role_.superseded());
  EXPECT_TRUE(hear(Logged{kVolume, kEpoch, {19}}).empty()) << "nothing is answered any more";
}

TEST_F(CoordinatorRoleTest, AStorageNodeHasTheHistoryAndWhatIsUnderWay) {
  serve();
  for (std::uint64_t token = 1; token <= 2; ++token) submit(token);
  hear(Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(sent<OpenStorage>(storage_connected(kOwn))->epoch, kEpoch);
  const Actions actions = hear(kOwn, StorageOpened{kVolume, kEpoch, {10}, {10}});
  EXPECT_EQ(sent<Resume>(actions)->settled, SequenceNumber{19});
  EXPECT_EQ(sent<WriteMessage>(actions)->stamp.sequence, SequenceNumber{20});
  EXPECT_FALSE(role_.caught_up(kOwn));
  hear(kOwn, CaughtUp{kVolume, kEpoch, {19}});
  EXPECT_TRUE(role_.caught_up(kOwn));
  EXPECT_EQ(sent<CommitMessage>(hear(Logged{kVolume, kEpoch, {20}}))->settled, SequenceNumber{20});
  EXPECT_TRUE(flush().empty()) << "it has been told";
}

TEST_F(CoordinatorRoleTest, WhereReadsAreServedAWriteIsCommittedBeforeItIsAnswered) {
  serve();
  open_storage(kOwn);
  open_storage(kOther);
  for (std::uint64_t token = 1; token <= 2; ++token) submit(token);
  std::vector<std::string> order;
  for (const auto& action : hear(Logged{kVolume, kEpoch, {20}})) {
    if (const auto* answer = std::get_if<Answer>(&action)) {
      order.push_back("answer " + std::to_string(answer->token.value));
    } else if (const auto* store = std::get_if<CoordinatorRole::ToStore>(&action)) {
      const auto& commit = std::get<CommitMessage>(store->message);
      order.push_back("commit " + std::to_string(commit.settled.value) + " at " +
                      std::to_string(store->node.value));
    }
  }
  EXPECT_EQ(order,
            (std::vector<std::string>{"commit 19 at 1", "answer 1", "commit 20 at 1", "answer 2"}));
  const auto rest = only<CoordinatorRole::ToStore>(flush());
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->node, kOther) << "once, when nothing else goes there";
}

TEST_F(CoordinatorRoleTest, TheFrontierIsThatOfTheLastImage) {
  serve();
  submit(1);
  submit(2);
  hear(Logged{kVolume, kEpoch, {20}});
  open_storage(kOwn, 20);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{7}) << "the other has not said anything";
  open_storage(kOther, 19);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{19});
  const auto told = *sent<FrontierMessage>(tick(0s));
  EXPECT_EQ(told.frontier, SequenceNumber{19});
  EXPECT_EQ(told.in_an_image, SequenceNumber{20}) << "of the first one";
  EXPECT_FALSE(sent<FrontierMessage>(tick(1s)).has_value()) << "once";
  EXPECT_TRUE(only<CoordinatorRole::Disconnect>(
      hear(kOther, StorageProgress{kVolume, kEpoch, {20}, {21}, 0})))
      << "nobody has #21";
}

// Nobody writes, and images get no further: what it was told is in no record.
TEST_F(CoordinatorRoleTest, ALoggerThatHasForgottenTheFrontierIsToldAgain) {
  serve();
  submit(1);
  submit(2);
  hear(Logged{kVolume, kEpoch, {20}});
  open_storage(kOwn, 20);
  open_storage(kOther, 19);
  EXPECT_EQ(sent<FrontierMessage>(tick(0s))->frontier, SequenceNumber{19});
  logger_disconnected();
  EXPECT_FALSE(sent<FrontierMessage>(tick(1s)).has_value());
  logger_connected();
  hear(opened(20));
  const auto again = sent<FrontierMessage>(tick(2s));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->frontier, SequenceNumber{19});
  EXPECT_EQ(again->in_an_image, SequenceNumber{20});
  EXPECT_FALSE(sent<FrontierMessage>(tick(3s)).has_value());
  logger_disconnected();
  logger_connected();
  LogOpened knows = opened(20);
  knows.frontier = {20};
  hear(knows);
  EXPECT_FALSE(sent<FrontierMessage>(tick(4s)).has_value()) << "it has not";
}

TEST_F(CoordinatorRoleTest, WritesWaitForTheSlowestStorageNodeButNotForLong) {
  serve();
  open_storage(kOwn);
  open_storage(kOther);
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {10}, 100 * kBlockBytes});
  EXPECT_TRUE(sent<WriteMessage>(submit(1)).has_value());
  EXPECT_TRUE(sent<WriteMessage>(submit(2)).has_value());
  hear(Logged{kVolume, kEpoch, {19}});
  EXPECT_EQ(sent<CommitMessage>(flush())->settled, SequenceNumber{19});
  hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {18}, 2 * kBlockBytes});
  EXPECT_FALSE(sent<WriteMessage>(submit(3)).has_value()) << "the other one grants two blocks";
  tick(10s);
  EXPECT_TRUE(tick(11s).empty());
  const Actions left_out = tick(11s + 1ms);
  EXPECT_EQ(all_sent<WriteMessage>(left_out).size(), 2u) << "to the logger, and to one of the two";
  EXPECT_EQ(sent<CommitMessage>(hear(Logged{kVolume, kEpoch, {21}}))->settled, SequenceNumber{21});
  EXPECT_TRUE(flush().empty()) << "the other one gets nothing";
  // When there is room for a first grant again, it goes on.
  EXPECT_TRUE(hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {18}, 3 * kBlockBytes}).empty());
  EXPECT_TRUE(hear(kOther, StorageProgress{kVolume, kEpoch, {17}, {18}, 9 * kBlockBytes}).empty())
      << "that was of before";
  const Actions back = hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {18}, 4 * kBlockBytes});
  EXPECT_EQ(sent<Resume>(back)->settled, SequenceNumber{21});
  EXPECT_FALSE(role_.caught_up(kOther));
  hear(kOther, CaughtUp{kVolume, kEpoch, {18}});
  EXPECT_FALSE(role_.caught_up(kOther)) << "that was of before";
  hear(kOther, CaughtUp{kVolume, kEpoch, {21}});
  EXPECT_TRUE(role_.caught_up(kOther));
}

TEST_F(CoordinatorRoleTest, AStorageNodeThatIsFullOfWhatIsNotSettledIsGoneBackTo) {
  serve();
  for (const NodeId node : {kOwn, kOther}) open_storage(node);
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {18}, 100 * kBlockBytes});
  hear(kOther, StorageProgress{kVolume, kEpoch, {18}, {18}, 2 * kBlockBytes});
  for (const std::uint64_t token : {1, 2})
    EXPECT_EQ(all_sent<WriteMessage>(submit(token)).size(), 3u);
  tick(10s);
  EXPECT_TRUE(tick(11s + 1ms).empty()) << "left out";
  hear(Logged{kVolume, kEpoch, {20}});
  EXPECT_TRUE(flush().empty());
  // It has written all that it knows to be settled, and says nothing more.
  const Actions back = tick(11s + 100ms);
  EXPECT_EQ(sent<Resume>(back)->settled, SequenceNumber{20});
  hear(kOther, CaughtUp{kVolume, kEpoch, {20}});
  EXPECT_TRUE(role_.caught_up(kOther));
}

TEST_F(CoordinatorRoleTest, NobodyWaitsForAStorageNodeThatCatchesUp) {
  serve();
  open_storage(kOwn);
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {18}, 100 * kBlockBytes});
  open_storage(kOther);
  std::uint64_t settled = 18;
  for (std::uint32_t lap = 0; lap < kLaps; ++lap) {
    const SequenceNumber resumed{settled};
    hear(kOther, StorageProgress{kVolume, kEpoch, resumed, {10 + lap}, kBlockBytes});
    EXPECT_EQ(all_sent<WriteMessage>(submit(++settled)).size(), 3u) << "it grants one";
    EXPECT_EQ(all_sent<WriteMessage>(submit(++settled)).size(), 2u) << "and is left out for two";
    hear(Logged{kVolume, kEpoch, {settled}});
    const Actions back = hear(kOther, StorageProgress{kVolume, kEpoch, resumed, resumed, 0});
    EXPECT_EQ(sent<Resume>(back)->settled, SequenceNumber{settled});
  }
  hear(kOther, StorageProgress{kVolume, kEpoch, {settled}, {20}, 0});
  EXPECT_TRUE(submit(settled + 1).empty()) << "it does not come nearer: now it is waited for";
  const Actions there =
      hear(kOther, StorageProgress{kVolume, kEpoch, {settled}, {settled}, kBlockBytes});
  EXPECT_EQ(all_sent<WriteMessage>(there).size(), 3u);
}

TEST_F(CoordinatorRoleTest, ReadsAreNeverLeftWithoutTheirStorageNode) {
  serve();
  open_storage(kOwn);
  submit(1);
  hear(kOwn, StorageProgress{kVolume, kEpoch, {18}, {10}, kBlockBytes});
  tick(10s);
  EXPECT_TRUE(tick(20s).empty());
}

TEST_F(CoordinatorRoleTest, AMomentIsOpenWhenNobodyCanStampBeforeIt) {
  serve();
  submit(1);
  Actions out;
  role_.settle_moment({77}, {kNow.ns + 500}, out);
  EXPECT_EQ(sent<RaiseFloor>(out)->time, VersionTime{kNow.ns + 500});
  EXPECT_GT(sent<WriteMessage>(submit(2))->stamp.time, VersionTime{kNow.ns + 500});
  EXPECT_FALSE(only<Settled>(hear(Logged{kVolume, kEpoch, {20}})).has_value());
  logger_disconnected();
  logger_connected();
  EXPECT_TRUE(sent<RaiseFloor>(hear(opened(20))).has_value()) << "it may not have heard of it";
  const auto settled = only<Settled>(hear(FloorRaised{kVolume, kEpoch, {kNow.ns + 500}}));
  ASSERT_TRUE(settled.has_value());
  EXPECT_EQ(settled->token.value, 77u);
}

}  // namespace
}  // namespace mariner::replication
