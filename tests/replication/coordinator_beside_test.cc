// A coordinator on a node that stores nothing: which storage node reads are served from.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "replication/coordinator_role.h"
#include "tests/replication/role_actions.h"

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;
constexpr VolumeId kVolume{1};
constexpr Epoch kEpoch{1};
constexpr NodeId kFirst{2};
constexpr NodeId kSecond{1};
constexpr NodeId kLogger{3};
constexpr VersionTime kNow{100'000};

class BesideTest : public ::testing::Test {
 protected:
  using Actions = CoordinatorRole::Actions;

  BesideTest() {
    Actions out;
    role_.logger_connected(kLogger, out);
    out.clear();
    role_.received(kLogger, LogOpened{kVolume, kEpoch, {}, {}, {}, {}}, kNow, out);
    EXPECT_TRUE(only<CoordinatorRole::Ready>(out).has_value());
  }
  Actions hear(NodeId node, const FromStorage& message) {
    Actions out;
    role_.received(node, message, kNow, out);
    return out;
  }
  void open(NodeId node) {
    Actions out;
    role_.storage_connected(node, out);
    hear(node, StorageOpened{kVolume, kEpoch, {}, {}});
  }
  Actions caught_up(NodeId node) { return hear(node, CaughtUp{kVolume, kEpoch, role_.settled()}); }
  void open_all() {
    for (const NodeId node : {kFirst, kSecond}) {
      open(node);
      caught_up(node);
    }
  }
  Actions lose(NodeId node) {
    Actions out;
    role_.storage_disconnected(node, kNow, out);
    return out;
  }
  // Has `durable` in its image since it resumed at `resumed`, and may be sent that many blocks.
  Actions progress(NodeId node, std::uint64_t resumed, std::uint64_t durable,
                   std::uint64_t blocks = 1000) {
    return hear(node, StorageProgress{kVolume, kEpoch, {resumed}, {durable}, blocks * kBlockBytes});
  }
  Actions submit(std::uint64_t token) {
    WriteRequest request;
    request.kind = WriteKind::kZero;
    request.extent = {{0}, {1}};
    Actions out;
    role_.submit({token}, std::move(request), kNow, out);
    return out;
  }
  Actions logged(std::uint64_t through) {
    Actions out;
    role_.received(kLogger, Logged{kVolume, kEpoch, {through}}, kNow, out);
    return out;
  }
  Actions tick(std::chrono::nanoseconds now) {
    Actions out;
    role_.tick(kNow, now, out);
    return out;
  }
  void room_wanted() {
    Actions out;
    role_.received(kLogger, RoomWanted{kVolume, kEpoch}, kNow, out);
  }
  // Who is told to commit before the first answer.
  static std::vector<NodeId> committed_before_answer(const Actions& actions) {
    std::vector<NodeId> nodes;
    for (const auto& action : actions) {
      if (std::holds_alternative<Answer>(action)) return nodes;
      const auto* store = std::get_if<CoordinatorRole::ToStore>(&action);
      if (store != nullptr && std::holds_alternative<CommitMessage>(store->message)) {
        nodes.push_back(store->node);
      }
    }
    ADD_FAILURE() << "nobody is answered";
    return nodes;
  }
  static std::vector<NodeId> told_commit(const Actions& actions) {
    std::vector<NodeId> nodes;
    for (const auto& action : actions) {
      const auto* store = std::get_if<CoordinatorRole::ToStore>(&action);
      if (store != nullptr && std::holds_alternative<CommitMessage>(store->message)) {
        nodes.push_back(store->node);
      }
    }
    return nodes;
  }

  using Nodes = std::vector<NodeId>;
  CoordinatorRole role_{{kVolume, kEpoch, {kFirst, kSecond}, {}, kLogger},
                        {.first_grant_bytes = 4 * kBlockBytes,
                         .storage_patience = 1s,
                         .laps_unhindered_max = 3,
                         .logger_patience = 2s,
                         .absent_max = 1h}};
};

TEST_F(BesideTest, WhoHasCaughtUpIsReadFrom) {
  EXPECT_EQ(role_.reads_from(), std::nullopt);
  open(kFirst);
  open(kSecond);
  EXPECT_EQ(role_.reads_from(), std::nullopt) << "nobody has caught up";
  caught_up(kSecond);
  EXPECT_EQ(role_.reads_from(), kSecond);
  caught_up(kFirst);
  EXPECT_EQ(role_.reads_from(), kFirst) << "it lacks nothing";
}

TEST_F(BesideTest, TheFirstIsReadFromOnceItHasWrittenWhatItMissed) {
  open(kFirst);
  caught_up(kFirst);
  submit(1);
  logged(1);
  open_all();
  ASSERT_EQ(role_.reads_from(), kFirst);
  lose(kFirst);
  EXPECT_EQ(role_.reads_from(), kSecond);
  open(kFirst);
  caught_up(kFirst);
  EXPECT_EQ(role_.reads_from(), kSecond);
  submit(2);
  EXPECT_EQ(committed_before_answer(logged(2)), Nodes{kSecond});
  const Actions back = progress(kFirst, 1, 1);
  EXPECT_EQ(role_.reads_from(), kFirst);
  EXPECT_EQ(told_commit(back), Nodes{kFirst}) << "before anybody reads there";
  EXPECT_EQ(sent<CommitMessage>(back)->settled, SequenceNumber{2});
  submit(3);
  EXPECT_EQ(committed_before_answer(logged(3)), Nodes{kFirst});
}

TEST_F(BesideTest, WhoGoesIsReplacedAtOnceByWhoHasEverything) {
  open_all();
  ASSERT_EQ(role_.reads_from(), kFirst);
  submit(1);
  EXPECT_EQ(committed_before_answer(logged(1)), Nodes{kFirst});
  const Actions gone = lose(kFirst);
  EXPECT_EQ(role_.reads_from(), kSecond);
  EXPECT_EQ(told_commit(gone), Nodes{kSecond});
  submit(2);
  EXPECT_EQ(committed_before_answer(logged(2)), Nodes{kSecond});
  lose(kSecond);
  EXPECT_EQ(role_.reads_from(), std::nullopt);
  submit(3);
  EXPECT_EQ(committed_before_answer(logged(3)), Nodes{});
}

TEST_F(BesideTest, WhoRefusesIsReplaced) {
  open_all();
  const Actions dropped =
      hear(kFirst, Refused{kVolume, kEpoch, {ErrorCode::kUnavailable, "it starts over"}});
  EXPECT_TRUE(only<CoordinatorRole::Disconnect>(dropped).has_value());
  EXPECT_EQ(role_.reads_from(), kSecond);
}

TEST_F(BesideTest, WritesWaitForTheOneThatReadsAreServedFromAndForTheOtherNotForLong) {
  open_all();
  progress(kFirst, 0, 0, 1);
  progress(kSecond, 0, 0, 1);
  EXPECT_FALSE(submit(1).empty());
  EXPECT_TRUE(submit(2).empty()) << "neither takes any";
  tick(10s);
  tick(12s);
  EXPECT_FALSE(role_.caught_up(kSecond)) << "it is left out";
  EXPECT_TRUE(role_.caught_up(kFirst));
  EXPECT_TRUE(submit(3).empty()) << "the one that reads are served from is waited for";
  logged(1);
  EXPECT_EQ(all_sent<WriteMessage>(lose(kFirst)).size(), 2u) << "when it is gone, nobody";
  EXPECT_EQ(role_.reads_from(), std::nullopt) << "the other one lacks something";
  progress(kSecond, 0, 1);
  caught_up(kSecond);
  EXPECT_EQ(role_.reads_from(), kSecond);
}

TEST_F(BesideTest, WhoTakesItsPlaceIsNotLeftOutAnyMore) {
  open_all();
  progress(kFirst, 0, 0);
  progress(kSecond, 0, 0, 1);
  submit(1);
  tick(10s);
  lose(kFirst);
  tick(20s);
  tick(30s);
  EXPECT_EQ(role_.reads_from(), kSecond);
  EXPECT_TRUE(submit(2).empty()) << "it is waited for";
}

// The log may give up what every image holds: somebody has to hold it.
TEST_F(BesideTest, OneOfThemAlwaysCountsForTheFrontier) {
  open_all();
  submit(1);
  logged(1);
  progress(kFirst, 0, 1);
  progress(kSecond, 0, 1);
  submit(2);
  logged(2);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{1});
  lose(kFirst);
  tick(10s);
  tick(10s + 2h);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{1}) << "the other one lacks it, too";
  progress(kSecond, 0, 2);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{2}) << "the first one is absent";
  submit(3);
  logged(3);
  lose(kSecond);
  tick(20h);
  tick(30h);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{2}) << "whoever was read from last";
}

// Its image may be lost: then what the log has is all there is of it.
TEST_F(BesideTest, NobodyIsGivenUpForOneThatIsNotThereEither) {
  open_all();
  submit(1);
  logged(1);
  progress(kFirst, 0, 1);
  lose(kSecond);
  tick(10s);
  lose(kFirst);
  room_wanted();
  EXPECT_FALSE(only<CoordinatorRole::GivenUp>(tick(10s + 2h)));
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{0});
}

// What a node that is away lacks is not worth that writes wait.
TEST_F(BesideTest, ALogThatNeedsRoomKeepsLittleForWhoIsAway) {
  open_all();
  submit(1);
  logged(1);
  progress(kFirst, 0, 1);
  lose(kSecond);
  tick(20s);
  room_wanted();
  EXPECT_FALSE(only<CoordinatorRole::GivenUp>(tick(29s))) << "it may have been restarted";
  EXPECT_FALSE(only<CoordinatorRole::GivenUp>(tick(31s))) << "nobody has asked since";
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{0});
  room_wanted();
  const auto given_up = only<CoordinatorRole::GivenUp>(tick(32s));
  ASSERT_TRUE(given_up);
  EXPECT_EQ(given_up->node, kSecond);
  EXPECT_TRUE(given_up->for_room);
  EXPECT_EQ(role_.writes().frontier(), SequenceNumber{1});
  room_wanted();
  EXPECT_FALSE(only<CoordinatorRole::GivenUp>(tick(33s))) << "once";
}

TEST_F(BesideTest, TheLoggerIsWaitedForHoweverLong) {
  open_all();
  Actions out;
  role_.logger_disconnected(kLogger, kNow, out);
  for (auto now = 10s; now < 60s; now += 1s) role_.tick(kNow, now, out);
  EXPECT_TRUE(out.empty()) << "nobody is asked to harden anything";
  EXPECT_EQ(role_.reads_from(), kFirst);
}

TEST_F(BesideTest, WhoStoresItReadsFromItselfAlone) {
  CoordinatorRole own{{kVolume, kEpoch, {kFirst, kSecond}, kSecond, kLogger}, {}};
  Actions out;
  own.logger_connected(kLogger, out);
  own.received(kLogger, LogOpened{kVolume, kEpoch, {}, {}, {}, {}}, kNow, out);
  for (const NodeId node : {kFirst, kSecond}) {
    own.storage_connected(node, out);
    own.received(node, StorageOpened{kVolume, kEpoch, {}, {}}, kNow, out);
    own.received(node, CaughtUp{kVolume, kEpoch, {}}, kNow, out);
    EXPECT_EQ(own.reads_from(), node == kSecond ? std::optional(kSecond) : std::nullopt);
  }
  own.storage_disconnected(kSecond, kNow, out);
  EXPECT_EQ(own.reads_from(), std::nullopt);
}

}  // namespace
}  // namespace mariner::replication
