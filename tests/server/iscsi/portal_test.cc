#include "server/iscsi/portal.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>

#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

using boost::asio::ip::tcp;

// With sockets that stay with the loop, and with sockets that are lent to threads.
class PortalTest : public testing::TestWithParam<std::size_t> {
 protected:
  PortalTest() {
    options.socket_threads = GetParam();
    options.socket_threads_load = 0;
    options.lent_pdu_bytes = 0;
    options.addresses = {{.address = "127.0.0.1:0"}};
    options.iscsi.closing_time_max = std::chrono::milliseconds(200);
  }
  void listen() {
    auto opened = Portal::open(
        options,
        {.context = context, .executor = executor, .directory = directory, .observer = observer});
    ASSERT_TRUE(opened) << to_string(opened.error());
    portal = std::move(*opened);
  }
  void open() {
    listen();
    portal->start();
  }
  // Lets the server work until `done` says so.
  void run_until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < limit) {
      context.run_one_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(done());
  }
  tcp::socket connect() {
    const std::string address = portal->addresses().front();
    const auto port =
        static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
    tcp::socket socket(context);
    socket.connect({boost::asio::ip::address_v4::loopback(), port});
    return socket;
  }
  TargetPdu exchange(tcp::socket& socket, const InitiatorPdu& pdu) {
    boost::asio::write(socket, boost::asio::buffer(pdu.wire()));
    run_until([&] { return socket.available() >= kBhsBytes; });
    TargetPdu reply;
    if (HasFailure()) return reply;  // what does not come is not waited for
    boost::asio::read(socket, boost::asio::buffer(reply.bhs));
    const std::size_t bytes = load_be24(&reply.bhs[5]);
    run_until([&] { return socket.available() >= bytes; });
    reply.data.resize((bytes + 3) / 4 * 4);
    boost::asio::read(socket, boost::asio::buffer(reply.data));
    return reply;
  }
  static InitiatorPdu login() {
    return login_pdu(
        keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"}),
        kOperationalToFull);
  }

  boost::asio::io_context context{1};
  // It can be run while nothing has been started.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      context.get_executor()};
  AsioExecutor executor{context};
  TestDirectory directory;
  TestObserver observer;
  PortalOptions options;
  std::unique_ptr<Portal> portal;
};

TEST_P(PortalTest, ServesASession) {
  open();
  tcp::socket socket = connect();
  EXPECT_EQ(exchange(socket, login()).u16(36), 0);
  const auto reply = exchange(
      socket, command_pdu({.expected_bytes = 512, .flags = kFinal | kRead, .cdb = read10(0, 1)}));
  EXPECT_EQ(reply.data, pattern(512));
  EXPECT_EQ(portal->sessions().size(), 1u);
  socket.close();
  run_until([&] { return portal->connections() == 0; });
  ASSERT_EQ(observer.ended.size(), 1u);
  EXPECT_EQ(observer.ended[0].reason, EndReason::kPeerClosed);
}

TEST_P(PortalTest, WhoConnectsBeforeTheStartIsServedAfterIt) {
  listen();
  tcp::socket early = connect();
  tcp::socket other = connect();
  boost::asio::write(early, boost::asio::buffer(login().wire()));
  // The loop runs meanwhile, so that it has seen that somebody waits.
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(portal->connections(), 0u);
  EXPECT_EQ(early.available(), 0u);
  portal->start();
  run_until([&] { return early.available() >= kBhsBytes; });
  ASSERT_FALSE(HasFailure());
  Bytes reply(kBhsBytes);
  boost::asio::read(early, boost::asio::buffer(reply));
  EXPECT_EQ(load_be<std::uint16_t>(&reply[36]), 0);
  run_until([&] { return portal->connections() == 2; });
}

TEST_P(PortalTest, WhoGaveUpBeforeTheStartHurtsNobody) {
  listen();
  connect().close();
  tcp::socket socket = connect();
  portal->start();
  EXPECT_EQ(exchange(socket, login()).u16(36), 0);
  run_until([&] { return portal->connections() == 1; });
}

TEST_P(PortalTest, APortalThatNeverStartedCanBeStopped) {
  listen();
  tcp::socket waiting = connect();
  bool stopped = false;
  portal->stop(5, [&] { stopped = true; });
  run_until([&] { return stopped; });
  std::byte byte{};
  boost::system::error_code error;
  waiting.non_blocking(true);
  run_until([&] {
    waiting.read_some(boost::asio::buffer(&byte, 1), error);
    return error && error != boost::asio::error::would_block;
  });
}

TEST_P(PortalTest, LastWordsArriveBeforeTheEnd) {
  open();
  tcp::socket socket = connect();
  InitiatorPdu bad =
      login_pdu(keys({"InitiatorName=iqn.x", "TargetName=iqn.none"}), kOperationalToFull);
  // Followed by bytes that nobody reads.
  Bytes wire = bad.wire();
  wire.resize(wire.size() + 100000);
  boost::asio::write(socket, boost::asio::buffer(wire));
  Bytes reply(kBhsBytes);
  run_until([&] { return socket.available() >= kBhsBytes; });
  boost::asio::read(socket, boost::asio::buffer(reply));
  EXPECT_EQ(load_be<std::uint16_t>(&reply[36]), 0x0203);
  run_until([&] { return !observer.ended.empty(); });
  boost::system::error_code error;
  run_until([&] {
    std::byte byte{};
    socket.non_blocking(true);
    socket.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof;
  });
  socket.close();
  run_until([&] { return portal->connections() == 0; });
}

TEST_P(PortalTest, OneWhoNeverClosesIsCut) {
  open();
  tcp::socket socket = connect();
  boost::asio::write(socket, boost::asio::buffer(std::string(1024, 'x')));
  run_until([&] { return observer.ended.size() == 1; });
  run_until([&] { return portal->connections() == 0; });
}

TEST_P(PortalTest, HalfOpenConnectionsLockNobodyOut) {
  options.login_connections_max = 8;
  open();
  std::vector<tcp::socket> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(connect());
    context.poll();
  }
  tcp::socket socket = connect();
  EXPECT_EQ(exchange(socket, login()).u16(36), 0);
  EXPECT_GE(observer.ended.size(), 30u);
  for (const auto& end : observer.ended) EXPECT_EQ(end.reason, EndReason::kCrowdedOut);
  EXPECT_FALSE(portal->sessions().list().empty());
}

TEST_P(PortalTest, StopDrainsAndEnds) {
  open();
  tcp::socket socket = connect();
  exchange(socket, login());
  bool stopped = false;
  portal->stop(5, [&] { stopped = true; });
  run_until([&] { return socket.available() >= kBhsBytes; });
  Bytes message(kBhsBytes);
  boost::asio::read(socket, boost::asio::buffer(message));
  EXPECT_EQ(message[0], std::byte{0x32});
  EXPECT_EQ(exchange(socket, logout_pdu(LogoutReason::kCloseSession)).opcode(),
            Opcode::kLogoutResponse);
  socket.close();
  run_until([&] { return stopped; });
}

TEST_P(PortalTest, StopCutsWhoDoesNotLogOut) {
  open();
  tcp::socket socket = connect();
  exchange(socket, login());
  bool stopped = false;
  portal->stop(0, [&] { stopped = true; });
  run_until([&] { return stopped; });
  EXPECT_EQ(observer.ended.at(0).reason, EndReason::kShutdown);
}

TEST_P(PortalTest, StopOfAnIdlePortalEndsAtOnce) {
  open();
  bool stopped = false;
  portal->stop(5, [&] { stopped = true; });
  run_until([&] { return stopped; });
}

TEST_P(PortalTest, AddressesAreChecked) {
  for (const auto* bad : {"", "3260", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000",
                          "localhost:3260", "::1:3260", "[::1:3260", "[127.0.0.1]:3260"}) {
    options.addresses = {{.address = bad}};
    const auto opened = Portal::open(
        options,
        {.context = context, .executor = executor, .directory = directory, .observer = observer});
    ASSERT_FALSE(opened) << bad;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << bad;
  }
}

TEST_P(PortalTest, AnAddressInUseIsNamed) {
  open();
  options.addresses = {{.address = portal->addresses().front()}};
  const auto second = Portal::open(
      options,
      {.context = context, .executor = executor, .directory = directory, .observer = observer});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(options.addresses[0].address), std::string::npos);
}

TEST_P(PortalTest, ManyAddressesServe) {
  options.addresses = {{.address = "127.0.0.1:0"}, {.address = "127.0.0.1:0"}};
  open();
  EXPECT_EQ(portal->addresses().size(), 2u);
}

// What SendTargets says to who came by the first address.
TEST_P(PortalTest, TheAddressesOfEveryGroupAreTold) {
  options.addresses = {{"127.0.0.1:0", 1}, {"127.0.0.1:0", 2}, {"0.0.0.0:0", 3}, {"[::1]:0", 4}};
  open();
  tcp::socket socket = connect();
  EXPECT_EQ(
      exchange(socket,
               login_pdu(keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Discovery"}),
                         kOperationalToFull))
          .u16(36),
      0);
  const std::string told = text_of(exchange(socket, text_pdu(keys({"SendTargets=All"}))).data);
  const auto addresses = portal->addresses();
  const std::string any = "127.0.0.1" + addresses[2].substr(addresses[2].rfind(':'));
  EXPECT_EQ(told,
            keys({"TargetName=" + std::string(TestDirectory::kName),
                  "TargetAddress=" + addresses[0] + ",1", "TargetAddress=" + addresses[1] + ",2",
                  "TargetAddress=" + any + ",3", "TargetAddress=" + addresses[3] + ",4"}));
}

// What has been read and waits for the answers before it is not forgotten when they are gone.
TEST_P(PortalTest, WhoAsksForMuchAtOnceIsAnsweredBitByBit) {
  open();
  for (int i = 0; i < 100; ++i) directory.names.push_back("iqn.x:" + std::to_string(i));
  tcp::socket socket = connect();
  exchange(socket, login_pdu(keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Discovery"}),
                             kOperationalToFull));
  constexpr std::size_t kRequests = 500;
  Bytes wire;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const Bytes one = text_pdu(keys({"SendTargets=All"})).wire();
    wire.insert(wire.end(), one.begin(), one.end());
  }
  boost::asio::write(socket, boost::asio::buffer(wire));
  Bytes stream;
  std::size_t answer_bytes = 0;  // of one
  socket.non_blocking(true);
  run_until([&] {
    Bytes some(256 * 1024);
    boost::system::error_code error;
    const std::size_t bytes = socket.read_some(boost::asio::buffer(some), error);
    stream.insert(stream.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (stream.size() < kBhsBytes) return false;
    answer_bytes = kBhsBytes + (load_be24(&stream[5]) + 3) / 4 * 4;
    return stream.size() >= kRequests * answer_bytes;
  });
  EXPECT_EQ(parse_target_stream(stream, false, false).size(), kRequests);
  EXPECT_EQ(exchange(socket, logout_pdu(LogoutReason::kCloseSession)).opcode(),
            Opcode::kLogoutResponse);
}

INSTANTIATE_TEST_SUITE_P(SocketThreads, PortalTest, testing::Values(0, 2));

// A loop that works for half of the time, then for all of it, then for hardly any.
TEST(PortalLoadTest, SocketsAreLentWhileTheLoopHasMuchToDo) {
  boost::asio::io_context context{1};
  AsioExecutor executor{context};
  TestDirectory directory;
  TestObserver observer;
  PortalOptions options;
  options.addresses = {{.address = "127.0.0.1:0"}};
  options.socket_threads = 1;
  options.lent_pdu_bytes = 0;
  double share = 0.5;
  std::chrono::nanoseconds busy{0};
  std::chrono::nanoseconds then = executor.monotonic_time();
  auto opened = Portal::open(options, {.context = context,
                                       .executor = executor,
                                       .directory = directory,
                                       .observer = observer,
                                       .busy_time = [&] {
                                         const auto now = executor.monotonic_time();
                                         busy += std::chrono::nanoseconds(static_cast<long>(
                                             share * static_cast<double>((now - then).count())));
                                         then = now;
                                         return busy;
                                       }});
  ASSERT_TRUE(opened) << to_string(opened.error());
  Portal& portal = **opened;
  portal.start();
  const std::string address = portal.addresses().front();
  tcp::socket socket(context);
  socket.connect({boost::asio::ip::address_v4::loopback(),
                  static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)))});
  const auto exchange = [&](const InitiatorPdu& pdu) {
    boost::asio::write(socket, boost::asio::buffer(pdu.wire()));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (socket.available() < kBhsBytes && std::chrono::steady_clock::now() < limit) {
      context.run_one_for(std::chrono::milliseconds(20));
    }
    Bytes reply(socket.available());
    boost::asio::read(socket, boost::asio::buffer(reply));
    return reply.size() >= kBhsBytes;
  };
  ASSERT_TRUE(exchange(login_pdu(keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Normal",
                                       "TargetName=iqn.2026-11.org.mariner:disk"}),
                                 kOperationalToFull)));
  const auto exchange_until = [&](std::size_t lent) {
    std::uint32_t itt = 1;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (portal.lent_connections() != lent && std::chrono::steady_clock::now() < limit) {
      ASSERT_TRUE(exchange(nop_out_pdu(++itt, kReservedTag)));
    }
    EXPECT_EQ(portal.lent_connections(), lent);
  };
  for (std::uint32_t itt = 1; itt < 100; ++itt) {
    ASSERT_TRUE(exchange(nop_out_pdu(itt, kReservedTag)));
  }
  EXPECT_EQ(portal.lent_connections(), 0u);
  share = 1;
  exchange_until(1);
  share = 0.1;
  exchange_until(0);
  socket.close();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (portal.connections() != 0 && std::chrono::steady_clock::now() < limit) {
    context.run_one_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(portal.connections(), 0u);
}

}  // namespace
}  // namespace mariner::iscsi
