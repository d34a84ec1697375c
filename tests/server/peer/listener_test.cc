#include "server/peer/listener.h"

#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <string>
#include <vector>

#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using test::End;
using test::Loop;
using test::TestCluster;

class Owner final : public ListenerObserver {
 public:
  void accepted(std::unique_ptr<Connection> connection) override {
    names.push_back(connection->peer().node);
    connection->observe(recorder);
    connections.push_back(std::move(connection));
  }
  void refused(const Error& reason) override { refusals.push_back(reason); }

  test::Recorder recorder;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<Error> refusals;
};

class ListenerTest : public testing::Test {
 protected:
  void SetUp() override { listen({}); }
  void listen(const ChannelOptions& options, std::size_t unknown_max = 64) {
    listener_ = Listener::open(loop_.environment(cluster_.tls("two"), options),
                               {.addresses = {{.address = "127.0.0.1", .port = 0}},
                                .unknown_max = unknown_max},
                               owner_)
                    .value();
    listener_->start();
  }
  ConnectedSocket connect() {
    tcp::socket socket(loop_.io());
    socket.connect({boost::asio::ip::address_v4::loopback(), listener_->addresses()[0].port});
    return {std::move(socket), "two's address"};
  }
  // What the listener says of somebody with this certificate.
  std::string refusal_of(const std::shared_ptr<const TlsContext>& tls) {
    End end;
    const std::size_t before = owner_.refusals.size();
    end.connection = Connection::dialed(loop_.environment(tls), connect(), "two", end.take());
    EXPECT_TRUE(loop_.run_until([&] { return owner_.refusals.size() > before; }));
    EXPECT_TRUE(loop_.run_until([&] { return !end.refusals.empty() || end.established; }));
    return owner_.refusals.size() > before ? owner_.refusals.back().message : "";
  }

  const TestCluster cluster_{"north"};
  Loop loop_;
  Owner owner_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ListenerTest, HandsOnNodesOfTheCluster) {
  End one;
  End three;
  one.connection =
      Connection::dialed(loop_.environment(cluster_.tls("one")), connect(), "two", one.take());
  three.connection =
      Connection::dialed(loop_.environment(cluster_.tls("three")), connect(), "two", three.take());
  ASSERT_TRUE(loop_.run_until(
      [&] { return owner_.names.size() == 2 && one.established && three.established; }));
  EXPECT_EQ(listener_->unknown(), 0u);
  EXPECT_TRUE(owner_.refusals.empty());
  ASSERT_TRUE(one.connection->send("hi", {}));
  ASSERT_TRUE(loop_.run_until([&] { return owner_.recorder.frames.size() == 1; }));
}

TEST_F(ListenerTest, NodesThatWereHandedOnOutliveIt) {
  End one;
  one.connection =
      Connection::dialed(loop_.environment(cluster_.tls("one")), connect(), "two", one.take());
  ASSERT_TRUE(loop_.run_until([&] { return owner_.names.size() == 1 && one.established; }));
  listener_.reset();
  ASSERT_TRUE(one.connection->send("still here", {}));
  ASSERT_TRUE(loop_.run_until([&] { return owner_.recorder.frames.size() == 1; }));
}

TEST_F(ListenerTest, CertificatesThatAreNotGood) {
  EXPECT_NE(refusal_of(TestCluster("north").tls("one")).find("alert unknown ca"),
            std::string::npos);
  const auto ended = cluster_.node("one", test::wall_now() - std::chrono::days(4000));
  EXPECT_NE(refusal_of(TlsContext::for_peers(ended).value()).find("certificate has expired"),
            std::string::npos);
  const auto early = cluster_.node("one", test::wall_now() + std::chrono::days(10));
  EXPECT_NE(refusal_of(TlsContext::for_peers(early).value()).find("not yet valid"),
            std::string::npos);
  EXPECT_NE(refusal_of(TlsContext::for_enrolling().value()).find("did not return a certificate"),
            std::string::npos);
  EXPECT_NE(refusal_of(cluster_.tls("two")).find("own name, two"), std::string::npos);
  EXPECT_TRUE(owner_.names.empty());
  EXPECT_EQ(listener_->unknown(), 0u);
}

TEST_F(ListenerTest, GarbageAndHttp) {
  std::vector<ConnectedSocket> clients;
  for (const std::string text : {"GET / HTTP/1.1\r\nHost: two\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                 "\x16\x03\x01\xff\xff", "\x15\x03\x03\x00\x02\x02\x28"}) {
    clients.push_back(connect());
    boost::asio::write(clients.back().socket, boost::asio::buffer(text));
    clients.back().socket.shutdown(tcp::socket::shutdown_send);
  }
  ASSERT_TRUE(loop_.run_until([&] { return owner_.refusals.size() == clients.size(); }));
  for (const Error& refusal : owner_.refusals) {
    EXPECT_TRUE(refusal.message.starts_with("127.0.0.1:")) << refusal.message;
  }
}

TEST_F(ListenerTest, SilentClientsAreCutAndLockNobodyOut) {
  listen({.handshake_time_max = 500ms, .heartbeat_interval = 50ms}, 4);
  std::vector<ConnectedSocket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(connect());
  ASSERT_TRUE(loop_.run_until([&] { return owner_.refusals.size() == 6; }));
  EXPECT_EQ(owner_.refusals[0].code, ErrorCode::kLimit);
  EXPECT_EQ(listener_->unknown(), 4u);
  End one;
  one.connection =
      Connection::dialed(loop_.environment(cluster_.tls("one")), connect(), "two", one.take());
  ASSERT_TRUE(loop_.run_until([&] { return owner_.names.size() == 1; }));
  ASSERT_TRUE(loop_.run_until([&] { return listener_->unknown() == 0; }));
  EXPECT_NE(owner_.refusals.back().message.find("handshake was not done within 0.5 s"),
            std::string::npos);
}

TEST_F(ListenerTest, ClosedInTheMiddleOfHandshakes) {
  std::vector<End> ends(8);
  for (int turns = 0; turns < 8; ++turns) {
    End& end = ends[turns];
    end.connection =
        Connection::dialed(loop_.environment(cluster_.tls("one")), connect(), "two", end.take());
    for (int i = 0; i < turns; ++i) {
      loop_.io().restart();
      loop_.io().run_one_for(1ms);
    }
  }
  listener_.reset();
  owner_.connections.clear();
  EXPECT_TRUE(loop_.run_until([&] {
    return std::ranges::all_of(
        ends, [](const End& end) { return !end.refusals.empty() || !end.recorder.ends.empty(); });
  }));
}

}  // namespace
}  // namespace mariner::peer
