#include "server/cluster/participant_service.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/service_rig.h"

namespace mariner::cluster {
namespace {

using replication::Envelope;
using replication::FromCoordinator;
using replication::NodeId;
using replication::OpenLog;
using replication::Refused;

constexpr NodeId kTwo{2};

// A coordinator that says what a test wants said, to node 2.
struct Voice final : BusCaller {
  void node_up(NodeId) override { up = true; }
  void node_down(NodeId, const Error&) override {
    up = false;
    ++downs;
  }
  Result<void> received(NodeId, std::uint64_t channel, VolumeId,
                        replication::ToCoordinator message) override {
    heard.emplace_back(channel, std::move(message));
    return {};
  }
  Result<void> received(NodeId, HistoryAnswer) override { return {}; }
  void writable(NodeId) override {}

  bool up = false;
  int downs = 0;
  std::vector<std::pair<std::uint64_t, replication::ToCoordinator>> heard;
};

class ParticipantServiceTest : public ::testing::Test {
 protected:
  ParticipantServiceTest()
      : bus_(rig_.loop.environment(rig_.cluster.tls("n1")),
             {{kTwo, "n2", rig_.node(2).bus->addresses()}}, voice_, rig_.node(1).server,
             [](const Error&) {}) {
    EXPECT_TRUE(bus_.dial(kTwo));
    EXPECT_TRUE(rig_.run_until([&] { return voice_.up; }));
    rig_.node(2).server.add(kVolume, {.logger = &logger_});
  }
  void say(std::uint64_t channel, FromCoordinator message, VolumeId volume = kVolume) {
    bus_.send(kTwo, Envelope{channel, volume, std::move(message)});
  }
  template <typename T>
  const T* answer() {
    EXPECT_TRUE(rig_.run_until([&] { return !voice_.heard.empty(); }));
    last_ = std::move(voice_.heard.front());
    voice_.heard.erase(voice_.heard.begin());
    return std::get_if<T>(&last_.second);
  }

  ServiceRig rig_{2};
  MemoryLog log_{rig_.loop.executor()};
  replication::LoggerHost logger_{{kVolume, {}, {}, {}, {}, {}}, rig_.loop.executor(), log_, log_};
  Voice voice_;
  PeerBus bus_;
  std::pair<std::uint64_t, replication::ToCoordinator> last_;
};

TEST_F(ParticipantServiceTest, ConversationsAreApart) {
  say(1, OpenLog{kVolume, {3}});
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  EXPECT_EQ(last_.first, 1u);
  say(2, OpenLog{kVolume, {4}});
  const Refused* refused = answer<Refused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(last_.first, 1u) << "the first one is told";
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  EXPECT_EQ(last_.first, 2u);
  say(2, replication::CloseChannel{});
  say(3, OpenLog{kVolume, {4}});
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  EXPECT_EQ(last_.first, 3u);
}

TEST_F(ParticipantServiceTest, WhatIsNotHereIsSaid) {
  say(1, OpenLog{{8}, {3}}, {8});
  const Refused* refused = answer<Refused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->error.code, ErrorCode::kUnavailable);
  say(2, replication::OpenStorage{kVolume, {3}});
  ASSERT_NE(answer<Refused>(), nullptr) << "it is the logger only";
}

TEST_F(ParticipantServiceTest, AVolumeThatIsRemovedIsNotHereAnyMore) {
  say(1, OpenLog{kVolume, {3}});
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  rig_.node(2).server.remove(kVolume);
  say(1, replication::FrontierMessage{kVolume, {3}, {0}});
  say(2, OpenLog{kVolume, {3}});
  ASSERT_NE(answer<Refused>(), nullptr);
  EXPECT_EQ(last_.first, 2u);
  EXPECT_EQ(voice_.downs, 0);
}

TEST_F(ParticipantServiceTest, NonsenseEndsTheConnection) {
  say(1, OpenLog{kVolume, {3}});
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  say(1, replication::Resume{kVolume, {3}, {0}});  // to a logger
  ASSERT_TRUE(rig_.run_until([&] { return voice_.downs == 1 && voice_.up; }));
  say(1, OpenLog{kVolume, {3}});
  ASSERT_NE(answer<replication::LogOpened>(), nullptr);
  say(1, replication::FrontierMessage{{9}, {3}, {0}}, {9});  // about another volume
  ASSERT_TRUE(rig_.run_until([&] { return voice_.downs == 2; }));
}

TEST_F(ParticipantServiceTest, ConversationsAreBounded) {
  for (std::uint64_t channel = 1; channel <= ParticipantService::kChannelsMax + 1; ++channel) {
    say(channel, OpenLog{kVolume, {3}});
  }
  ASSERT_TRUE(rig_.run_until([&] { return voice_.downs == 1; }));
}

}  // namespace
}  // namespace mariner::cluster
