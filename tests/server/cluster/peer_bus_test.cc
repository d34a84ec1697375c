#include "server/cluster/peer_bus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/server/peer/peer_rig.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using peer::test::Loop;
using peer::test::TestCluster;
using replication::Envelope;
using replication::NodeId;

constexpr VolumeId kVolume{7};
constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};

// A node that writes down what it hears.
struct Node final : BusCaller, BusServer {
  void node_up(NodeId node) override { ups.push_back(node); }
  void node_down(NodeId node, const Error& /*reason*/) override { downs.push_back(node); }
  Result<void> received(NodeId /*from*/, std::uint64_t channel, VolumeId /*volume*/,
                        replication::ToCoordinator message) override {
    back.emplace_back(channel, std::move(message));
    return answer_taken;
  }
  Result<void> received(NodeId /*from*/, HistoryAnswer answer) override {
    answers.push_back(std::move(answer));
    return {};
  }
  void writable(NodeId /*node*/) override { ++writables; }
  void peer_connected(PeerId peer, NodeId node) override {
    peers.push_back(peer);
    peer_nodes.push_back(node);
  }
  void peer_closed(PeerId peer) override { closed.push_back(peer); }
  Result<void> received(PeerId from, std::uint64_t channel, VolumeId volume,
                        replication::FromCoordinator message) override {
    if (echo) {
      bus->send(from, Envelope{channel, volume,
                               replication::ToCoordinator(replication::Logged{volume, {1}, {2}})});
    }
    forth.push_back(std::move(message));
    return {};
  }
  Result<void> received(PeerId from, HistoryQuestion question) override {
    EXPECT_TRUE(
        bus->answer(from, encode(HistoryAnswer{question.volume, question.id, DoneAnswer{}})));
    questions.push_back(std::move(question));
    return {};
  }
  void writable(PeerId /*peer*/) override { ++writables; }

  std::unique_ptr<PeerBus> bus;
  bool echo = true;
  Result<void> answer_taken;
  std::vector<NodeId> ups;
  std::vector<NodeId> downs;
  std::vector<std::pair<std::uint64_t, replication::ToCoordinator>> back;
  std::vector<HistoryAnswer> answers;
  std::vector<PeerId> peers;
  std::vector<NodeId> peer_nodes;
  std::vector<PeerId> closed;
  std::vector<replication::FromCoordinator> forth;
  std::vector<HistoryQuestion> questions;
  std::vector<Error> reports;
  std::string changes;  // of who takes part in multicast
  int writables = 0;
};

class PeerBusTest : public ::testing::Test {
 protected:
  PeerBusTest() {
    open(two_, "two", {{kOne, "one", {{.address = "127.0.0.1", .port = 1}}}});
    EXPECT_TRUE(two_.bus->listen({{.address = "127.0.0.1", .port = 0}}));
    open(one_, "one", {{kTwo, "two", two_.bus->addresses()}});
  }
  void open(Node& node, const std::string& name, std::vector<PeerAddress> peers,
            const peer::ChannelOptions& options = {}) {
    node.bus = std::make_unique<PeerBus>(
        loop_.environment(cluster_.tls(name), options), std::move(peers), node, node,
        [&node](const Error& error) { node.reports.push_back(error); });
  }
  void connect() {
    ASSERT_TRUE(one_.bus->dial(kTwo));
    ASSERT_TRUE(loop_.run_until([&] { return one_.ups.size() == 1 && two_.peers.size() == 1; }));
  }
  static Envelope write_of(std::uint64_t blocks) {
    replication::WriteMessage write;
    write.volume = kVolume;
    write.stamp = {{1}, {1}, {1}};
    write.write.extent = {{0}, {blocks}};
    write.write.payload = test::LoggedRig::blocks_of('w', blocks);
    return {5, kVolume, replication::FromCoordinator(write)};
  }

  const TestCluster cluster_{"north"};
  Loop loop_;
  Node two_;
  Node one_;
};

TEST_F(PeerBusTest, CarriesMessagesQuestionsAndAnswers) {
  connect();
  EXPECT_EQ(two_.peer_nodes, std::vector<NodeId>{kOne});
  one_.bus->send(kTwo, write_of(3));
  const HistoryFrame question = encode(HistoryQuestion{
      kVolume, 9, BeforeImageQuestion{{{1}, {2}}, test::LoggedRig::blocks_of('x', 2)}});
  ASSERT_TRUE(one_.bus->ask(kTwo, question));
  ASSERT_TRUE(loop_.run_until([&] { return one_.back.size() == 1 && one_.answers.size() == 1; }));
  ASSERT_EQ(two_.forth.size(), 1u);
  const auto& write = std::get<replication::WriteMessage>(two_.forth[0]);
  EXPECT_EQ(test::LoggedRig::text_of(write.write.payload.bytes()), "www");
  EXPECT_EQ(one_.back[0].first, 5u);
  EXPECT_TRUE(std::holds_alternative<replication::Logged>(one_.back[0].second));
  EXPECT_EQ(one_.answers[0].id, 9u);
}

TEST_F(PeerBusTest, AConnectionThatBreaksIsMadeAgain) {
  connect();
  one_.bus->redial(kTwo);
  ASSERT_TRUE(loop_.run_until([&] { return one_.ups.size() == 2 && two_.closed.size() == 1; }));
  EXPECT_EQ(one_.downs.size(), 1u);
  EXPECT_EQ(two_.peers.size(), 2u);
  EXPECT_TRUE(one_.bus->is_up(kTwo));
}

TEST_F(PeerBusTest, NonsenseEndsTheConnection) {
  connect();
  // An answer where questions are expected.
  ASSERT_TRUE(one_.bus->ask(kTwo, {std::string("\xff\xff"), {}}));
  ASSERT_TRUE(loop_.run_until([&] { return two_.closed.size() == 1 && one_.ups.size() == 2; }));
  ASSERT_EQ(two_.reports.size(), 1u);
  EXPECT_EQ(two_.reports[0].code, ErrorCode::kProtocol);
}

TEST_F(PeerBusTest, WhatItsOwnerDoesNotTakeEndsTheConnection) {
  connect();
  one_.answer_taken = Error{ErrorCode::kProtocol, "that was not asked"};
  one_.bus->send(kTwo, write_of(1));
  ASSERT_TRUE(loop_.run_until([&] { return one_.ups.size() == 2; }));
  ASSERT_EQ(one_.reports.size(), 1u);
  EXPECT_EQ(one_.reports[0].message, "that was not asked");
}

TEST_F(PeerBusTest, WhatDoesNotFitEndsTheConnection) {
  open(one_, "one", {{kTwo, "two", two_.bus->addresses()}},
       {.queued_bytes_max = 32u << 20, .held_bytes_max = 32u << 20});
  connect();
  two_.echo = false;
  for (int i = 0; i < 40; ++i) one_.bus->send(kTwo, write_of(256));
  EXPECT_FALSE(one_.bus->is_up(kTwo));
  ASSERT_TRUE(loop_.run_until([&] { return one_.downs.size() == 1 && one_.ups.size() == 2; }));
}

TEST_F(PeerBusTest, WhatSeveralVolumesHaveUnderWayFits) {
  open(one_, "one", {{kTwo, "two", two_.bus->addresses()}}, {.queued_bytes_max = 32u << 20});
  connect();
  two_.echo = false;
  for (int i = 0; i < 200; ++i) one_.bus->send(kTwo, write_of(256));
  EXPECT_TRUE(one_.bus->is_up(kTwo));
  ASSERT_TRUE(loop_.run_until([&] { return two_.forth.size() == 200; }));
  EXPECT_TRUE(one_.downs.empty());
}

TEST_F(PeerBusTest, ANodeThatIsNotConfiguredIsNotHeard) {
  Node three;
  open(three, "three", {{kTwo, "two", two_.bus->addresses()}});
  ASSERT_TRUE(three.bus->dial(kTwo));
  ASSERT_TRUE(loop_.run_until([&] { return !two_.reports.empty(); }));
  EXPECT_NE(two_.reports[0].message.find("three"), std::string::npos);
  EXPECT_TRUE(two_.peers.empty());
  EXPECT_FALSE(one_.bus->dial({9}).has_value());
}

// One node that writes, and two that hear it, with multicast on the loopback interface. Somebody
// else listens to the group, too, to see what goes there.
class MulticastBusTest : public ::testing::Test {
 protected:
  static constexpr NodeId kThree{3};

  MulticastBusTest() {
    for (Node* const node : {&two_, &three_}) {
      open(*node, node == &two_ ? "two" : "three", {{kOne, "one", {{"127.0.0.1", 1}}}});
      EXPECT_TRUE(node->bus->listen({{.address = "127.0.0.1", .port = 0}}));
      node->echo = false;
    }
    open(one_, "one",
         {{kTwo, "two", two_.bus->addresses()}, {kThree, "three", three_.bus->addresses()}});
    for (const NodeId node : {kTwo, kThree}) EXPECT_TRUE(one_.bus->dial(node));
    EXPECT_TRUE(loop_.run_until([&] { return one_.ups.size() == 2; }));
  }
  void open(Node& node, const std::string& name, std::vector<PeerAddress> peers) {
    node.bus = std::make_unique<PeerBus>(
        loop_.environment(cluster_.tls(name)), std::move(peers), node, node,
        [&node](const Error& error) { node.reports.push_back(error); });
    node.bus->use_multicast({.interface = "127.0.0.1", .to_own_machine = true},
                            [&node](const std::string& who, const trm::SenderHub::Change& change) {
                              node.changes += (change.admitted ? "+" : "-") + who + " ";
                            });
  }
  static trm::Group group() {
    return {"239.192.44.9", static_cast<std::uint16_t>(20'000 + getpid() % 20'000)};
  }
  void write(std::uint64_t number, std::uint64_t blocks) {
    replication::WriteMessage write;
    write.volume = kVolume;
    write.stamp = {{1}, {number}, {number}};
    write.write.extent = {{0}, {blocks}};
    write.write.payload = test::LoggedRig::blocks_of(static_cast<char>('a' + number % 26), blocks);
    for (const NodeId node : {kTwo, kThree}) {
      one_.bus->send(node, {5, kVolume, replication::FromCoordinator(write)});
    }
  }
  // Bytes of payloads that went to the group since it was asked last.
  std::uint64_t overheard() {
    std::uint64_t bytes = 0;
    while (listener_->receive([&](std::span<const std::byte> datagram) {
      const auto parsed = trm::parse(datagram);
      if (parsed && parsed->header.kind == trm::DatagramKind::kPayload) {
        bytes += parsed->body.size();
      }
    })) {
    }
    return bytes;
  }
  // Writes until multicast carries them; all of them arrive, in order, and whole.
  void expect_multicast() {
    ASSERT_TRUE(loop_.run_until([&] {
      if (++number_ % 50 == 0) write(number_, 2);
      return overheard() > 0;
    }));
    for (int i = 0; i < 100; ++i) {
      ++number_;
      write(number_, 1 + number_ % 5);
    }
    expect_all_heard();
  }
  void expect_all_heard() {
    const auto last = [](const Node& node) -> std::uint64_t {
      if (node.forth.empty()) return 0;
      return std::get<replication::WriteMessage>(node.forth.back()).stamp.sequence.value;
    };
    ASSERT_TRUE(loop_.run_until([&] { return last(two_) == number_ && last(three_) == number_; }));
    for (const Node* const node : {&two_, &three_}) {
      SequenceNumber before;
      for (const auto& message : node->forth) {
        const auto& heard = std::get<replication::WriteMessage>(message);
        EXPECT_GT(heard.stamp.sequence, before);
        before = heard.stamp.sequence;
        EXPECT_EQ(test::LoggedRig::text_of(heard.write.payload.bytes()),
                  std::string(heard.write.extent.count.value,
                              static_cast<char>('a' + before.value % 26)));
      }
    }
  }

  const TestCluster cluster_{"north"};
  Loop loop_;
  Result<trm::GroupListener> listener_ =
      trm::GroupListener::open({group().address, group().port, "127.0.0.1"});
  Node two_;
  Node three_;
  Node one_;
  std::uint64_t number_ = 0;
};

TEST_F(MulticastBusTest, WritesForSeveralGoToTheGroup) {
  ASSERT_TRUE(one_.bus->begin_flow(kVolume, group(), {kTwo, kThree}).has_value());
  expect_multicast();
  EXPECT_TRUE(one_.reports.empty());
  EXPECT_TRUE(one_.changes == "+two +three " || one_.changes == "+three +two ") << one_.changes;
  EXPECT_TRUE(one_.bus->standing(kVolume, kTwo)->admitted);
  EXPECT_FALSE(one_.bus->standing(VolumeId{8}, kTwo).has_value());
  EXPECT_FALSE(two_.bus->standing(kVolume, kOne).has_value());
  EXPECT_GT(std::as_const(*one_.bus).multicast()->sender().counters().multicast_bytes, 0u);
}

TEST_F(MulticastBusTest, WithoutAFlowNothingDoes) {
  for (int i = 0; i < 20; ++i) write(++number_, 2);
  expect_all_heard();
  EXPECT_EQ(overheard(), 0u);
}

TEST_F(MulticastBusTest, AfterTheFlowsEndNothingDoes) {
  ASSERT_TRUE(one_.bus->begin_flow(kVolume, group(), {kTwo, kThree}).has_value());
  expect_multicast();
  one_.bus->end_flow(kVolume);
  (void)overheard();
  for (int i = 0; i < 20; ++i) write(++number_, 2);
  expect_all_heard();
  EXPECT_EQ(overheard(), 0u);
}

TEST_F(MulticastBusTest, WhoComesBackTakesPartAgain) {
  ASSERT_TRUE(one_.bus->begin_flow(kVolume, group(), {kTwo, kThree}).has_value());
  expect_multicast();
  one_.bus->redial(kTwo);
  ASSERT_TRUE(loop_.run_until([&] { return one_.ups.size() == 3; }));
  (void)overheard();
  expect_multicast();
}

TEST_F(MulticastBusTest, AGroupThatCannotBeUsedIsNamed) {
  const Result<void> begun = one_.bus->begin_flow(kVolume, {"224.0.0.5", 1}, {kTwo, kThree});
  ASSERT_FALSE(begun.has_value());
  EXPECT_NE(begun.error().message.find("224.0.0.5"), std::string::npos);
  write(++number_, 2);
  expect_all_heard();
}

}  // namespace
}  // namespace mariner::cluster
