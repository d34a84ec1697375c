#include "server/peer/tls_stream.h"

#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <optional>
#include <string>

#include "proto/bytes.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using test::Loop;
using test::TestCluster;
using Progress = TlsStream::Progress;

// Two ends in one thread: each goes on as far as it can.
class TlsStreamTest : public testing::Test {
 protected:
  void connect(std::shared_ptr<const TlsContext> one, std::shared_ptr<const TlsContext> two) {
    sockets_.emplace(loop_.socket_pair());
    sockets_->first.socket.non_blocking(true);
    sockets_->second.socket.non_blocking(true);
    one_.emplace(
        TlsStream::over(sockets_->first.socket.native_handle(), one, TlsRole::kDials).value());
    two_.emplace(
        TlsStream::over(sockets_->second.socket.native_handle(), two, TlsRole::kAccepts).value());
  }
  // The errors of either end, "" for none.
  std::pair<std::string, std::string> shake_hands() {
    std::pair<std::string, std::string> errors;
    bool one_done = false;
    bool two_done = false;
    EXPECT_TRUE(loop_.run_until([&] {
      const auto step = [](TlsStream& stream, bool& done, std::string& error) {
        if (done) return;
        const auto outcome = stream.handshake();
        done = !outcome || outcome->progress == Progress::kDone;
        if (!outcome) error = outcome.error().message;
      };
      step(*one_, one_done, errors.first);
      step(*two_, two_done, errors.second);
      return one_done && two_done;
    }));
    return errors;
  }

  // What comes next; it may be on its way still.
  TlsStream::Outcome read(TlsStream& stream) {
    TlsStream::Outcome outcome{.progress = Progress::kWantsRead};
    EXPECT_TRUE(loop_.run_until([&] {
      outcome = stream.read(place_).value();
      return outcome.progress != Progress::kWantsRead;
    }));
    return outcome;
  }

  Loop loop_;
  std::optional<std::pair<ConnectedSocket, ConnectedSocket>> sockets_;
  std::optional<TlsStream> one_;
  std::optional<TlsStream> two_;
  std::array<std::byte, 100> place_{};
};

TEST_F(TlsStreamTest, BytesGoBothWaysAndTheEndIsTold) {
  const TestCluster cluster("north");
  connect(cluster.tls("one"), cluster.tls("two"));
  EXPECT_EQ(shake_hands(), (std::pair<std::string, std::string>{}));
  ASSERT_EQ(one_->shown().size(), 1u);
  EXPECT_EQ(one_->shown()[0].node_name().value().node, "two");
  EXPECT_EQ(two_->shown()[0].node_name().value().node, "one");

  EXPECT_EQ(one_->read(place_).value().progress, Progress::kWantsRead);
  EXPECT_EQ(one_->write(as_byte_span("hello")).value().bytes, 5u);
  EXPECT_EQ(read(*two_).bytes, 5u);
  EXPECT_EQ(std::memcmp(place_.data(), "hello", 5), 0);
  EXPECT_EQ(two_->write(as_byte_span("you")).value().bytes, 3u);
  EXPECT_EQ(read(*one_).bytes, 3u);
  one_->close();
  EXPECT_EQ(read(*two_).progress, Progress::kEnd);
}

TEST_F(TlsStreamTest, AnEndWithoutAWordIsAnEnd) {
  const TestCluster cluster("north");
  connect(cluster.tls("one"), cluster.tls("two"));
  shake_hands();
  sockets_->first.socket.close();
  EXPECT_EQ(read(*two_).progress, Progress::kEnd);
}

TEST_F(TlsStreamTest, AnotherAuthoritysCertificateIsNotAccepted) {
  connect(TestCluster("north").tls("one"), TestCluster("north").tls("two"));
  const auto [one, two] = shake_hands();
  EXPECT_NE(one.find("its certificate is not accepted"), std::string::npos) << one;
  EXPECT_EQ(two, "it has refused this node: tlsv1 alert unknown ca");
}

TEST_F(TlsStreamTest, AnEndedCertificateIsNotAccepted) {
  const TestCluster cluster("north", test::wall_now() - std::chrono::days(10));
  const auto ended =
      cluster.node("one", test::wall_now() - kCertificateLife - std::chrono::days(1));
  connect(TlsContext::for_peers(ended).value(), cluster.tls("two"));
  const auto [one, two] = shake_hands();
  EXPECT_NE(two.find("its certificate is not accepted: certificate has expired"), std::string::npos)
      << two;
}

TEST_F(TlsStreamTest, WhoShowsNoCertificateIsNotAccepted) {
  const TestCluster cluster("north");
  connect(TlsContext::for_enrolling().value(), cluster.tls("two"));
  const auto [one, two] = shake_hands();
  EXPECT_NE(two.find("peer did not return a certificate"), std::string::npos) << two;
}

TEST_F(TlsStreamTest, WhoInvitesShowsTheAuthorityToo) {
  const TestCluster cluster("north");
  connect(TlsContext::for_enrolling().value(),
          TlsContext::for_inviting(cluster.node("two")).value());
  EXPECT_EQ(shake_hands(), (std::pair<std::string, std::string>{}));
  const auto shown = one_->shown();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].node_name().value().node, "two");
  EXPECT_EQ(shown[1].fingerprint(), cluster.authority().certificate.fingerprint());
  EXPECT_TRUE(two_->shown().empty());
}

TEST_F(TlsStreamTest, PlainHttpIsNamedForWhatItIs) {
  const TestCluster cluster("north");
  connect(cluster.tls("one"), cluster.tls("two"));
  boost::asio::write(sockets_->first.socket, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n", 18));
  std::optional<Error> error;
  ASSERT_TRUE(loop_.run_until([&] {
    const auto outcome = two_->handshake();
    if (!outcome) error = outcome.error();
    return error.has_value();
  }));
  EXPECT_EQ(error->code, ErrorCode::kProtocol);
  EXPECT_EQ(error->message, "TLS 1.3 was expected: http request");
}

}  // namespace
}  // namespace mariner::peer
