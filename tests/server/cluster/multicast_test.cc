#include "server/cluster/multicast.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/peer/peer_rig.h"
#include "tests/support/own_network.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using peer::test::Loop;

constexpr trm::FlowNumber kFlow{7};
constexpr trm::ConnectionNumber kConnection{1};

// A sender and two receivers, each with sockets of its own on the loopback interface. Connections
// are posts on the loop.
class MulticastTest : public ::testing::Test {
 protected:
  struct Node final : Multicast::Connections {
    Node(MulticastTest& test_in, std::uint64_t number_in, const std::string& interface)
        : test(test_in), number(number_in) {
      multicast = std::make_unique<Multicast>(
          test.loop_.io(), test.loop_.executor(), *this,
          MulticastOptions{.interface = interface, .to_own_machine = true});
    }
    void send(trm::PeerNumber to, std::string header, PayloadSlice payload,
              const std::optional<trm::Reference>& reference) override {
      referring += reference ? 1 : 0;
      post(to.value, [header, payload, reference](Node& node) {
        if (reference) {
          return node.multicast->receiver().frame(kConnection, header, *reference,
                                                  node.multicast->now());
        }
        node.multicast->receiver().frame(
            kConnection, header,
            payload.length > 0 ? Payload::copy_of(payload.bytes()) : Payload{});
      });
    }
    void tell(trm::PeerNumber to, const trm::FromSender& message) override {
      post(to.value,
           [message](Node& node) { node.multicast->receiver().told(kConnection, message); });
    }
    void deliver(trm::ConnectionNumber /*from*/, std::string_view header,
                 Payload payload) override {
      heard.emplace_back(header, payload);
    }
    void tell(trm::ConnectionNumber /*to*/, const trm::FromReceiver& message) override {
      post(0, [message, from = number](Node& sender) {
        EXPECT_TRUE(sender.multicast->sender().received({from}, message, sender.multicast->now()));
      });
    }
    void end(trm::ConnectionNumber /*connection*/, const Error& reason) override {
      ADD_FAILURE() << reason.message;
    }
    void changed(const trm::SenderHub::Change& change) override {
      taking_part += change.admitted ? 1 : -1;
    }
    void failed(const Error& error) override { failures.push_back(error.message); }

    void post(std::uint64_t to, std::function<void(Node&)> work) const {
      test.loop_.executor().post(
          [node = test.nodes_.at(to), work = std::move(work)] { work(*node); });
    }

    MulticastTest& test;
    const std::uint64_t number;
    std::unique_ptr<Multicast> multicast;
    std::vector<std::pair<std::string, Payload>> heard;
    std::vector<std::string> failures;
    int taking_part = 0;
    int referring = 0;
  };

  explicit MulticastTest(const std::string& interface = "127.0.0.1") {
    for (std::uint64_t number = 0; number < 3; ++number) {
      nodes_.push_back(std::make_shared<Node>(*this, number, interface));
    }
    for (const std::uint64_t receiver : {1, 2}) {
      nodes_[receiver]->multicast->receiver().connected(kConnection);
      sender().sender().connected({receiver});
    }
  }
  ~MulticastTest() override {
    loop_.poll();
    for (const auto& node : nodes_) node->multicast.reset();
  }
  Multicast& sender() { return *nodes_[0]->multicast; }
  [[nodiscard]] static trm::Group group() {
    return {"239.192.44.8", static_cast<std::uint16_t>(20'000 + getpid() % 20'000)};
  }
  void begin() {
    const Result<void> begun = sender().begin_flow(kFlow, group(), {{1}, {2}});
    ASSERT_TRUE(begun.has_value()) << begun.error().message;
    ASSERT_TRUE(loop_.run_until([&] { return nodes_[0]->taking_part == 2; }));
  }
  void begin_again() {
    for (const auto& node : nodes_) node->taking_part = 0;
    begin();
    for (int i = 0; i < 10; ++i) send(i, 8192);
    expect_heard(10, 8192);
    EXPECT_GT(nodes_[0]->referring, 0);
  }
  void send(int number, std::size_t bytes) {
    Payload payload = Payload::allocate(bytes);
    std::ranges::fill(payload.bytes(), static_cast<std::byte>(number));
    for (const std::uint64_t to : {1, 2}) {
      sender().sender().send({to}, kFlow, std::to_string(number), {payload, 0, bytes});
    }
  }
  void expect_heard(int count, std::size_t bytes) {
    const auto all = [&](std::size_t node) {
      return nodes_[node]->heard.size() == static_cast<std::size_t>(count);
    };
    ASSERT_TRUE(loop_.run_until([&] { return all(1) && all(2); }));
    for (const std::size_t node : {1, 2}) {
      for (int i = 0; i < count; ++i) {
        const auto& [header, payload] = nodes_[node]->heard[static_cast<std::size_t>(i)];
        EXPECT_EQ(header, std::to_string(i));
        ASSERT_EQ(payload.size(), bytes);
        EXPECT_TRUE(std::ranges::all_of(
            payload.bytes(), [i](std::byte each) { return each == static_cast<std::byte>(i); }));
      }
    }
  }

  Loop loop_;
  std::vector<std::shared_ptr<Node>> nodes_;
};

TEST_F(MulticastTest, PayloadsReachBothThroughTheGroup) {
  begin();
  for (int i = 0; i < 200; ++i) send(i, 8192);
  expect_heard(200, 8192);
  EXPECT_EQ(nodes_[0]->referring, 400);
  EXPECT_TRUE(nodes_[0]->failures.empty());
}

TEST_F(MulticastTest, LargePayloadsDoToo) {
  begin();
  for (int i = 0; i < 60; ++i) send(i, 1u << 20);
  expect_heard(60, 1u << 20);
  EXPECT_GT(nodes_[0]->referring, 0);
}

TEST_F(MulticastTest, BeforeAnybodyTakesPartFramesCarryTheirPayloads) {
  ASSERT_TRUE(sender().begin_flow(kFlow, group(), {{1}, {2}}).has_value());
  for (int i = 0; i < 10; ++i) send(i, 8192);
  expect_heard(10, 8192);
  EXPECT_EQ(nodes_[0]->referring, 0);
}

TEST_F(MulticastTest, WithoutAnInterfaceNothingGoesThere) {
  Multicast none(loop_.io(), loop_.executor(), *nodes_[0], {.interface = "192.0.2.77"});
  const Result<void> begun = none.begin_flow(kFlow, group(), {{1}, {2}});
  ASSERT_FALSE(begun.has_value());
  EXPECT_NE(begun.error().message.find("192.0.2.77"), std::string::npos);
  Multicast untold(loop_.io(), loop_.executor(), *nodes_[0], {});
  const Result<void> refused = untold.begin_flow(kFlow, group(), {{1}, {2}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("[replication] interface"), std::string::npos);
}

TEST_F(MulticastTest, WhoWasNotToldAnInterfaceCannotListenAndSaysWhatToDo) {
  nodes_[2]->multicast =
      std::make_unique<Multicast>(loop_.io(), loop_.executor(), *nodes_[2], MulticastOptions{});
  nodes_[2]->multicast->receiver().connected(kConnection);
  ASSERT_TRUE(sender().begin_flow(kFlow, group(), {{1}, {2}}).has_value());
  const trm::SenderHub& hub = std::as_const(sender()).sender();
  ASSERT_TRUE(loop_.run_until([&] { return hub.standing(kFlow, {2})->why.has_value(); }));
  EXPECT_EQ(hub.standing(kFlow, {2})->why, trm::Dismissal::kCannotListen);
  EXPECT_NE(hub.standing(kFlow, {2})->reason.find("[replication] interface"), std::string::npos);
  for (int i = 0; i < 10; ++i) send(i, 8192);
  expect_heard(10, 8192);
}

TEST_F(MulticastTest, OnceAllFlowsHaveEndedNothingIsLeft) {
  begin();
  sender().sender().end_flow(kFlow);
  ASSERT_TRUE(loop_.run_until([&] { return std::as_const(sender()).sender().streams() == 0; }));
  ASSERT_TRUE(loop_.run_until(
      [&] { return std::as_const(*nodes_[1]->multicast).receiver().unused(kConnection); }));
  begin_again();
}

TEST_F(MulticastTest, AGroupThatIsNoneIsNamed) {
  const Result<void> begun = sender().begin_flow(kFlow, {"10.0.0.1", 6003}, {{1}, {2}});
  ASSERT_FALSE(begun.has_value());
  EXPECT_NE(begun.error().message.find("\"10.0.0.1\""), std::string::npos);
}

// (Made before the sockets, and taken away after them.)
struct OwnNetwork {
  test::OwnNetwork network;
};

// The same on an interface that can be changed.
class MulticastInterfaceTest : protected OwnNetwork, public MulticastTest {
 protected:
  MulticastInterfaceTest() : MulticastTest(test::OwnNetwork::kAddress) {}
  void SetUp() override {
    if (!network.made()) GTEST_SKIP() << "no right to make a network, or no ip(8)";
  }
  // Sends `count` payloads, numbered from how many there were before.
  void send_more(int count) {
    for (int i = 0; i < count; ++i) send(sent_++, 65'536);
    expect_heard(sent_, 65'536);
  }
  // ... all of which go by multicast, and most get through. (A receiver that is not patient enough
  // may ask for some.)
  void expect_multicast(int count) {
    const int before = nodes_[0]->referring;
    const std::uint64_t repaired = sender().sender().repaired_bytes();
    send_more(count);
    EXPECT_EQ(nodes_[0]->referring - before, 2 * count);
    EXPECT_LT(sender().sender().repaired_bytes() - repaired, std::size_t{65'536} * count);
  }
  // How often a node said something with this text.
  [[nodiscard]] auto said(std::size_t node, const std::string& text) const {
    return std::ranges::count_if(nodes_[node]->failures, [&](const std::string& each) {
      return each.find(text) != std::string::npos;
    });
  }
  // The largest datagram that the group gets within a time.
  std::size_t largest(std::chrono::milliseconds time) {
    auto overhearing =
        trm::GroupListener::open({group().address, group().port, test::OwnNetwork::kAddress});
    std::size_t bytes = 0;
    loop_.run_for(time);
    while (overhearing->receive(
        [&](std::span<const std::byte> datagram) { bytes = std::max(bytes, datagram.size()); })) {
    }
    return bytes;
  }
  void expect_both_admitted() {
    ASSERT_TRUE(loop_.run_until([&] { return nodes_[0]->taking_part == 2; }));
  }

  int sent_ = 0;
};

TEST_F(MulticastInterfaceTest, WhenPacketsBecomeSmallerItGoesOnWithSmallerDatagrams) {
  ASSERT_TRUE(network.make_interface(9000));
  begin();
  expect_multicast(50);
  ASSERT_TRUE(network.set_mtu(1500));
  // What was too large is repaired, or its receivers are left out for a while.
  send_more(50);
  EXPECT_EQ(largest(3s), 1472u);
  expect_both_admitted();
  expect_multicast(50);
  EXPECT_EQ(nodes_[0]->failures.size(), 1u);
  EXPECT_EQ(said(0, "larger than the interface's packets"), 1);
}

TEST_F(MulticastInterfaceTest, AnInterfaceThatComesLaterIsUsedAsItIs) {
  EXPECT_FALSE(sender().begin_flow(kFlow, group(), {{1}, {2}}).has_value());
  ASSERT_TRUE(network.make_interface(1500));
  begin();
  EXPECT_EQ(largest(1s), 1472u);
  sender().sender().end_flow(kFlow);
  ASSERT_TRUE(loop_.run_until([&] { return std::as_const(sender()).sender().streams() == 0; }));
  ASSERT_TRUE(network.set_mtu(9000));
  nodes_[0]->taking_part = 0;
  begin();
  EXPECT_EQ(largest(1s), 8972u);
}

TEST_F(MulticastInterfaceTest, AnInterfaceThatIsMadeAnewIsUsedAgain) {
  ASSERT_TRUE(network.make_interface(1500));
  begin();
  expect_multicast(20);
  ASSERT_TRUE(network.take_interface_away());
  ASSERT_TRUE(loop_.run_until([&] { return said(1, "no interface of this node has") == 1; }));
  send_more(20);
  ASSERT_TRUE(network.make_interface(1500));
  ASSERT_TRUE(loop_.run_until([&] { return said(1, "joined again") == 1; }));
  ASSERT_TRUE(loop_.run_until([&] { return said(2, "joined again") == 1; }));
  expect_both_admitted();
  loop_.run_for(300ms);
  expect_both_admitted();
  expect_multicast(20);
  loop_.run_for(1200ms);
  EXPECT_EQ(said(1, "joined again"), 1);
}

}  // namespace
}  // namespace mariner::cluster
