#include "server/peer/acceptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using boost::asio::ip::tcp;
using test::Loop;

class AcceptorTest : public testing::Test {
 protected:
  void start() {
    auto opened =
        Acceptor::open(loop_.io(), loop_.executor(), {{.address = "127.0.0.1", .port = 0}});
    ASSERT_TRUE(opened) << opened.error().message;
    acceptor_ = *opened;
    acceptor_->start([this](ConnectedSocket socket) { sockets_.push_back(std::move(socket)); },
                     [this](const Error& error) { failures_.push_back(error); });
  }
  tcp::socket connect() {
    tcp::socket socket(loop_.io());
    socket.connect({boost::asio::ip::address_v4::loopback(), acceptor_->addresses().at(0).port});
    return socket;
  }

  Loop loop_;
  std::shared_ptr<Acceptor> acceptor_;
  std::vector<ConnectedSocket> sockets_;
  std::vector<Error> failures_;
};

TEST_F(AcceptorTest, HandsOnWhoConnects) {
  start();
  std::vector<tcp::socket> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(connect());
  ASSERT_TRUE(loop_.run_until([&] { return sockets_.size() == 40; }));
  EXPECT_TRUE(sockets_[0].remote.starts_with("127.0.0.1:"));
  acceptor_->stop();
  EXPECT_THROW(connect(), boost::system::system_error);
}

TEST_F(AcceptorTest, AnAddressInUseIsNamed) {
  start();
  const auto second = Acceptor::open(loop_.io(), loop_.executor(), acceptor_->addresses());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_NE(second.error().message.find(to_string(acceptor_->addresses()[0])), std::string::npos);
  acceptor_->stop();
}

TEST_F(AcceptorTest, GoesOnWhenDescriptorsAreThereAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, to look at an object's type";
#endif
  start();
  tcp::socket client = connect();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // From here on, none: the lowest free one is beyond the limit.
  const int free = ::dup(0);
  ASSERT_GE(free, 0);
  ::close(free);
  rlimit none = limit;
  none.rlim_cur = static_cast<rlim_t>(free);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(loop_.run_until([&] { return !failures_.empty(); }));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(sockets_.empty());
  EXPECT_TRUE(loop_.run_until([&] { return sockets_.size() == 1; }));
  acceptor_->stop();
}

TEST_F(AcceptorTest, Ipv6AndAllAddressesBesideEachOther) {
  auto opened = Acceptor::open(loop_.io(), loop_.executor(), {{.address = "0.0.0.0", .port = 0}});
  ASSERT_TRUE(opened);
  const std::uint16_t port = (*opened)->addresses()[0].port;
  const auto both =
      Acceptor::open(loop_.io(), loop_.executor(), {{.address = "::", .port = port, .v6 = true}});
  EXPECT_TRUE(both) << both.error().message;
}

}  // namespace
}  // namespace mariner::peer
