#include "server/peer/link.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/peer/listener.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using test::Loop;
using test::Recorder;
using test::TestCluster;

class Far final : public ListenerObserver {
 public:
  void accepted(std::unique_ptr<Connection> connection) override {
    connection->observe(recorder);
    connections.push_back(std::move(connection));
  }
  void refused(const Error& reason) override { refusals.push_back(reason); }

  Recorder recorder;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<Error> refusals;
};

class Near final : public LinkObserver {
 public:
  void up(Connection& connection) override {
    ++ups;
    EXPECT_TRUE(connection.send("hello", {}));
  }
  void down(const Error& reason) override { downs.push_back(reason); }
  void received(std::string_view header, Payload) override { headers.emplace_back(header); }
  void writable() override {}
  void attempt_failed(const Error& reason) override { failures.push_back(reason); }

  int ups = 0;
  std::vector<Error> downs;
  std::vector<std::string> headers;
  std::vector<Error> failures;
};

class LinkTest : public testing::Test {
 protected:
  void listen(const std::string& node, std::uint16_t port = 0) {
    listener_ = Listener::open(loop_.environment(cluster_.tls(node)),
                               {.addresses = {{.address = "127.0.0.1", .port = port}}}, far_)
                    .value();
    listener_->start();
  }
  void dial(std::vector<Endpoint> addresses) {
    link_.emplace(loop_.environment(cluster_.tls("one")),
                  LinkOptions{.node = "two",
                              .addresses = std::move(addresses),
                              .backoff = {.least = 10ms, .most = 40ms, .seed = 3}},
                  near_);
  }
  // Where nobody listens.
  Endpoint nowhere() {
    boost::asio::ip::tcp::acceptor closed(loop_.io(), {boost::asio::ip::address_v4::loopback(), 0});
    return {.address = "127.0.0.1", .port = closed.local_endpoint().port()};
  }

  const TestCluster cluster_{"north"};
  Loop loop_;
  Far far_;
  Near near_;
  std::unique_ptr<Listener> listener_;
  std::optional<Link> link_;
};

TEST_F(LinkTest, ComesUpAndBothSpeak) {
  listen("two");
  dial(listener_->addresses());
  ASSERT_TRUE(loop_.run_until([&] { return !far_.recorder.frames.empty(); }));
  EXPECT_EQ(far_.connections[0]->peer().node, "one");
  ASSERT_NE(link_->connection(), nullptr);
  EXPECT_EQ(link_->connection()->peer().node, "two");
  EXPECT_TRUE(far_.connections[0]->send("you", {}));
  ASSERT_TRUE(loop_.run_until([&] { return !near_.headers.empty(); }));
  EXPECT_EQ(near_.headers[0], "you");
}

TEST_F(LinkTest, ComesUpAgainEachTimeItBreaks) {
  listen("two");
  dial(listener_->addresses());
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(loop_.run_until([&] { return near_.ups == i && far_.connections.size() == 1; }));
    far_.connections.clear();
    ASSERT_TRUE(loop_.run_until([&] { return near_.downs.size() == static_cast<std::size_t>(i); }));
    EXPECT_EQ(link_->connection(), nullptr);
  }
  EXPECT_TRUE(near_.failures.empty());
}

TEST_F(LinkTest, TriesItsAddressesInTurn) {
  listen("two");
  const Endpoint first = nowhere();
  dial({first, listener_->addresses()[0]});
  ASSERT_TRUE(loop_.run_until([&] { return near_.ups == 1; }));
  ASSERT_EQ(near_.failures.size(), 1u);
  EXPECT_NE(near_.failures[0].message.find(to_string(first)), std::string::npos);
}

TEST_F(LinkTest, WaitsForANodeThatIsAway) {
  const Endpoint address = nowhere();
  dial({address});
  ASSERT_TRUE(loop_.run_until([&] { return near_.failures.size() == 4; }));
  EXPECT_EQ(near_.ups, 0);
  listen("two", address.port);
  ASSERT_TRUE(loop_.run_until([&] { return near_.ups == 1; }));
  EXPECT_TRUE(near_.downs.empty());
}

TEST_F(LinkTest, TheAttemptsBecomeRarer) {
  dial({nowhere()});
  loop_.run_for(400ms);
  // 10 ms at first, then up to 40 ms with jitter: at least 20 ms each.
  EXPECT_LE(near_.failures.size(), 24u);
  EXPECT_GE(near_.failures.size(), 5u);
}

TEST_F(LinkTest, AnotherNodeAtTheAddressIsNotTakenForIt) {
  listen("three");
  dial(listener_->addresses());
  ASSERT_TRUE(loop_.run_until([&] { return near_.failures.size() >= 2; }));
  EXPECT_EQ(near_.ups, 0);
  EXPECT_NE(near_.failures[0].message.find("expected two, found three"), std::string::npos);
}

TEST_F(LinkTest, DestroyedAtAnyTimeItSaysNothing) {
  listen("two");
  for (int turns = 0; turns < 40; ++turns) {
    dial(listener_->addresses());
    for (int i = 0; i < turns; ++i) {
      loop_.io().restart();
      loop_.io().run_one_for(1ms);
    }
    link_.reset();
    const int ups = near_.ups;
    loop_.run_for(2ms);
    EXPECT_EQ(near_.ups, ups);
    EXPECT_TRUE(near_.downs.empty());
  }
  EXPECT_GT(near_.ups, 0);
}

}  // namespace
}  // namespace mariner::peer
