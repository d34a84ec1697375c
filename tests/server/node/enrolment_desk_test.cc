#include "server/node/enrolment_desk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "server/peer/enrol.h"
#include "server/peer/invitation.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

peer::WallTime wall_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

Endpoint free_address() {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor listener(io, {boost::asio::ip::address_v4::loopback(), 0});
  return {.address = "127.0.0.1", .port = listener.local_endpoint().port()};
}

class EnrolmentDeskTest : public ::testing::Test {
 protected:
  EnrolmentDeskTest() { std::signal(SIGPIPE, SIG_IGN); }
  ~EnrolmentDeskTest() override { ::close(null_); }

  void make_cluster() {
    ASSERT_TRUE(
        peer::PkiFolder(pki_).create_cluster({.cluster = "north", .node = "n1"}, wall_now()));
  }
  // Enrols beside the loop.
  Result<peer::NodeIdentity> enrol(const std::string& token) {
    std::optional<Result<peer::NodeIdentity>> result;
    std::atomic<bool> ended = false;
    std::thread thread([&] {
      result.emplace(peer::enrol(peer::parse_token(token).value(), wall_now()));
      ended = true;
      loop_.post([] {});
    });
    loop_.run_until([&] { return ended.load(); });
    thread.join();
    return *std::move(result);
  }

  logging::test::TemporaryDirectory directory_;
  const std::string pki_ = directory_.file("pki");
  const int null_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  Log log_{{.fd = null_}};
  EventLoop loop_;
  EnrolmentDesk desk_{loop_, log_, pki_, free_address()};
};

TEST_F(EnrolmentDeskTest, ANodeIsInvitedAndEnrols) {
  make_cluster();
  EXPECT_FALSE(desk_.listening());
  const auto invitation = desk_.invite("n2", false);
  ASSERT_TRUE(invitation) << invitation.error().message;
  EXPECT_EQ(invitation->node(), "n2");
  EXPECT_EQ(invitation->cluster(), "north");
  EXPECT_GT(invitation->ends_ns(), loop_.wall_time().ns);
  EXPECT_TRUE(desk_.listening());
  const auto identity = enrol(invitation->token());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->name, (peer::NodeName{"north", "n2"}));
  const auto again = enrol(invitation->token());
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("was used already"), std::string::npos);
}

TEST_F(EnrolmentDeskTest, ItListensOnlyWhileSomebodyIsWaitedFor) {
  make_cluster();
  const auto first = desk_.invite("n2", false);
  const auto second = desk_.invite("n3", false);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(enrol(first->token()));
  desk_.tick();
  EXPECT_TRUE(desk_.listening());
  ASSERT_TRUE(enrol(second->token()));
  // Once the guest has gone.
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (desk_.listening() && std::chrono::steady_clock::now() < until) {
    loop_.context().restart();
    loop_.context().run_one_for(5ms);
    desk_.tick();
  }
  EXPECT_FALSE(desk_.listening());
  EXPECT_EQ(enrol(second->token()).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(enrol(desk_.invite("n4", false)->token()));
}

TEST_F(EnrolmentDeskTest, ADryRunChecksAndTellsNothing) {
  EXPECT_FALSE(desk_.invite("n2", true));
  make_cluster();
  const auto planned = desk_.invite("n2", true);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->token(), "");
  EXPECT_EQ(planned->cluster(), "north");
  EXPECT_FALSE(desk_.listening());
}

TEST_F(EnrolmentDeskTest, WhatIsMissingIsSaid) {
  const auto nothing = desk_.invite("n2", false);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
  make_cluster();
  EXPECT_EQ(desk_.invite("N2", false).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(desk_.invite("n1", false).error().code, ErrorCode::kAlreadyExists);
  EnrolmentDesk nowhere(loop_, log_, pki_, std::nullopt);
  const auto refused = nowhere.invite("n2", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("[cluster] enrol"), std::string::npos);
  std::filesystem::remove(pki_ + "/ca.key");
  const auto elsewhere = desk_.invite("n2", false);
  ASSERT_FALSE(elsewhere);
  EXPECT_NE(elsewhere.error().message.find("nodes are invited where"), std::string::npos);
}

TEST_F(EnrolmentDeskTest, AnAddressThatIsTakenIsNamed) {
  make_cluster();
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor other(io, {boost::asio::ip::address_v4::loopback(), 0});
  EnrolmentDesk desk(loop_, log_, pki_,
                     Endpoint{.address = "127.0.0.1", .port = other.local_endpoint().port()});
  const auto refused = desk.invite("n2", false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::node
