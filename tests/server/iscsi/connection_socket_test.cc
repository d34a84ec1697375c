#include "server/iscsi/connection_socket.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

using boost::asio::ip::tcp;

// One socket, and whoever owns it: sockets are lent while `lends`.
class ConnectionSocketTest : public testing::Test, public SocketOwner {
 protected:
  ConnectionSocketTest() {
    auto started = SocketThreads::start(1, executor_);
    CHECK(started);
    threads_ = std::move(*started);
    server_.options.closing_time_max = std::chrono::milliseconds(200);
    tcp::acceptor acceptor(context_, {boost::asio::ip::address_v4::loopback(), 0});
    // Little room on the way: long answers take several calls.
    peer_.open(tcp::v4());
    peer_.set_option(boost::asio::socket_base::receive_buffer_size(16384));
    peer_.connect(acceptor.local_endpoint());
    tcp::socket accepted = acceptor.accept();
    accepted.set_option(boost::asio::socket_base::send_buffer_size(16384));
    peer_.non_blocking(true);
    socket_ = std::make_shared<ConnectionSocket>(
        *this, std::move(accepted),
        Connection::Environment{.options = server_.options,
                                .directory = server_.directory,
                                .registry = *server_.registry,
                                .observer = server_.observer,
                                .host = nullptr,
                                .executor = executor_,
                                .endpoints = {"192.0.2.7:50000", "192.0.2.1:3260"},
                                .portal_group = 1,
                                .portal_addresses = {}});
    socket_->start();
  }
  ~ConnectionSocketTest() override {
    if (socket_) socket_->close();
  }

  void note(std::shared_ptr<ConnectionSocket> socket) override {
    ++noted_;
    executor_.post([this, socket] {
      if (socket_ && !socket->settle()) std::exchange(socket_, {})->close();
    });
  }
  [[nodiscard]] SocketThreads* lender() const override { return lends_ ? threads_.get() : nullptr; }
  [[nodiscard]] std::size_t lent_pdu_bytes() const override { return lent_pdu_bytes_; }

  void run_until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < limit) {
      context_.run_one_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(done());
  }
  void say(const InitiatorPdu& pdu) { said_.push_back(pdu); }
  // Sends all of that.
  void write_all() {
    Bytes wire;
    for (const InitiatorPdu& pdu : std::exchange(said_, {})) {
      const Bytes one = pdu.wire();
      wire.insert(wire.end(), one.begin(), one.end());
    }
    std::size_t written = 0;
    run_until([&] {
      boost::system::error_code error;
      written += peer_.write_some(boost::asio::buffer(wire) + written, error);
      return written == wire.size();
    });
  }
  // What the server says to all of that, until so many PDUs have come.
  std::vector<TargetPdu> answers(std::size_t count) {
    write_all();
    Bytes stream;
    run_until([&] {
      boost::system::error_code error;
      std::array<std::byte, 8192> some;
      const std::size_t bytes = peer_.read_some(boost::asio::buffer(some), error);
      stream.insert(stream.end(), some.begin(), some.begin() + bytes);
      return pdus_in(stream) >= count;
    });
    if (HasFailure()) return std::vector<TargetPdu>(count);
    return parse_target_stream(stream, false, false);
  }
  void log_in() {
    say(login_pdu(keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Normal",
                        "TargetName=iqn.2026-11.org.mariner:disk", "InitialR2T=Yes",
                        "ImmediateData=Yes", "MaxRecvDataSegmentLength=1048576"}),
                  kOperationalToFull));
    EXPECT_EQ(answers(1).at(0).u16(36), 0);
  }
  // The first 20 commands, whose answers are far more than fits on the way.
  void ask_for_much() {
    for (std::uint32_t itt = 1; itt <= 20; ++itt) {
      say(command_pdu({.itt = itt,
                       .cmd_sn = itt,
                       .expected_bytes = 400 * 512,
                       .flags = kFinal | kRead,
                       .cdb = read10(0, 400)}));
    }
    write_all();
    run_until([&] { return peer_.available() > 0; });
    EXPECT_TRUE(lent());
  }
  [[nodiscard]] bool lent() const { return threads_->lent() == 1; }

  bool lends_ = false;
  std::size_t lent_pdu_bytes_ = 0;
  int noted_ = 0;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  AsioExecutor executor_{context_};
  TestServer server_;
  std::unique_ptr<SocketThreads> threads_;
  tcp::socket peer_{context_};
  std::shared_ptr<ConnectionSocket> socket_;

 private:
  static std::size_t pdus_in(std::span<const std::byte> stream) {
    std::size_t count = 0;
    while (stream.size() >= kBhsBytes) {
      const std::size_t bytes = kBhsBytes + (load_be24(&stream[5]) + 3) / 4 * 4;
      if (stream.size() < bytes) break;
      stream = stream.subspan(bytes);
      ++count;
    }
    return count;
  }

  std::vector<InitiatorPdu> said_;
};

// Lent and taken back again and again, between commands and in the middle of them.
TEST_F(ConnectionSocketTest, NothingIsLostOnTheWayToAThreadAndBack) {
  log_in();
  std::uint32_t cmd_sn = 1;
  int changes = 0;
  for (std::uint32_t round = 0; round < 100; ++round) {
    lends_ = round % 3 != 0;
    const Bytes data = pattern(16 * 512, round + 1);
    say(command_pdu({.itt = 2 * round,
                     .cmd_sn = cmd_sn++,
                     .expected_bytes = 16 * 512,
                     .flags = kFinal | kWrite,
                     .cdb = write10(0, 16),
                     .data = data}));
    say(command_pdu({.itt = 2 * round + 1,
                     .cmd_sn = cmd_sn++,
                     .expected_bytes = 400 * 512,
                     .flags = kFinal | kRead,
                     .cdb = read10(0, 400)}));
    const bool was_lent = lent();
    const auto replies = answers(2);
    ASSERT_FALSE(HasFailure()) << round;
    changes += was_lent != lent() ? 1 : 0;
    ASSERT_EQ(replies.size(), 2u);
    ASSERT_EQ(server_.device().written.size(), 1u);
    const Payload written = std::exchange(server_.device().written, {}).at(0);
    EXPECT_TRUE(std::ranges::equal(std::span(written.data(), written.size()), data));
    EXPECT_TRUE(replies[1].data == pattern(400 * 512));
  }
  EXPECT_GT(changes, 40);
}

TEST_F(ConnectionSocketTest, LargeWritesArriveThroughAThread) {
  log_in();
  lends_ = true;
  constexpr std::uint32_t kBytes = 256 * 512;
  const Bytes data = pattern(kBytes);
  say(command_pdu({.itt = 7,
                   .cmd_sn = 1,
                   .expected_bytes = kBytes,
                   .flags = kFinal | kWrite,
                   .cdb = write10(0, 256)}));
  const auto solicited = answers(1).at(0);
  ASSERT_EQ(solicited.opcode(), Opcode::kR2t);
  EXPECT_TRUE(lent());
  for (std::uint32_t at = 0; at < kBytes; at += 8192) {
    say(data_out_pdu({.itt = 7,
                      .ttt = solicited.ttt(),
                      .data_sn = at / 8192,
                      .offset = at,
                      .final = at + 8192 == kBytes,
                      .data = {data.begin() + at, data.begin() + at + 8192}}));
  }
  EXPECT_EQ(answers(1).at(0).opcode(), Opcode::kScsiResponse);
  ASSERT_EQ(server_.device().written.size(), 1u);
  const Payload& written = server_.device().written[0];
  EXPECT_TRUE(std::ranges::equal(std::span(written.data(), written.size()), data));
}

TEST_F(ConnectionSocketTest, WhoIsSilentIsTakenBackAndLentAgain) {
  log_in();
  lends_ = true;
  for (std::uint32_t itt = 1; itt <= 3; ++itt) {
    say(nop_out_pdu(itt, kReservedTag));
    EXPECT_EQ(answers(1).at(0).itt(), itt);
    EXPECT_TRUE(lent());
    socket_->tick();
    context_.poll();
    EXPECT_TRUE(lent()) << "something has come since the last tick";
    run_until([&] {
      socket_->tick();
      return !lent();
    });
  }
}

TEST_F(ConnectionSocketTest, WhoSaysLittleAtATimeStaysWithTheLoop) {
  log_in();
  lends_ = true;
  lent_pdu_bytes_ = 16384;
  std::uint32_t cmd_sn = 1;
  const auto read = [&](std::uint16_t blocks, bool lent_then) {
    for (int i = 0; i < 300; ++i) {
      say(command_pdu({.itt = cmd_sn,
                       .cmd_sn = cmd_sn,
                       .expected_bytes = blocks * 512u,
                       .flags = kFinal | kRead,
                       .cdb = read10(0, blocks)}));
      ++cmd_sn;
      const auto replies = answers(1);
      ASSERT_FALSE(HasFailure());
      EXPECT_TRUE(replies[0].data == pattern(blocks * 512u));
    }
    run_until([&] { return lent() == lent_then; });
  };
  // It was lent for its login, when everybody was. The first 128 PDUs say what it is like.
  read(8, false);
  read(128, true);
  read(40, true);  // half as long on average, 10 KiB
  read(8, false);
}

TEST_F(ConnectionSocketTest, WhoClosesIsGone) {
  log_in();
  lends_ = true;
  say(nop_out_pdu(1, kReservedTag));
  EXPECT_EQ(answers(1).size(), 1u);
  EXPECT_TRUE(lent());
  peer_.close();
  run_until([&] { return socket_ == nullptr; });
  ASSERT_EQ(server_.observer.ended.size(), 1u);
  EXPECT_EQ(server_.observer.ended[0].reason, EndReason::kPeerClosed);
  EXPECT_FALSE(lent());
}

// Reset, while a thread is asked to receive and to send.
TEST_F(ConnectionSocketTest, WhoResetsIsGone) {
  log_in();
  lends_ = true;
  ask_for_much();
  peer_.set_option(boost::asio::socket_base::linger(true, 0));
  peer_.close();
  run_until([&] { return socket_ == nullptr; });
  ASSERT_EQ(server_.observer.ended.size(), 1u);
  EXPECT_FALSE(lent());
}

// A peer that asks for more than it has taken, while the socket is wanted back.
TEST_F(ConnectionSocketTest, ComesBackFromUnderFullLoad) {
  log_in();
  std::uint32_t cmd_sn = 1;
  for (int round = 0; round < 20; ++round) {
    lends_ = round % 2 == 0;
    for (int i = 0; i < 8; ++i) {
      say(command_pdu({.itt = cmd_sn,
                       .cmd_sn = cmd_sn,
                       .expected_bytes = 400 * 512,
                       .flags = kFinal | kRead,
                       .cdb = read10(0, 400)}));
      ++cmd_sn;
    }
    EXPECT_EQ(answers(8).size(), 8u);
    run_until([&] { return lent() == lends_; });
  }
}

// Last words, behind what the thread was given before.
TEST_F(ConnectionSocketTest, LastWordsAreSaidByTheLoop) {
  log_in();
  lends_ = true;
  say(command_pdu({.itt = 1,
                   .cmd_sn = 1,
                   .expected_bytes = 400 * 512,
                   .flags = kFinal | kRead,
                   .cdb = read10(0, 400)}));
  say(logout_pdu(LogoutReason::kCloseSession));
  const auto replies = answers(2);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_TRUE(replies[0].data == pattern(400 * 512));
  EXPECT_EQ(replies[1].opcode(), Opcode::kLogoutResponse);
  // We have said that nothing more comes.
  boost::system::error_code error;
  run_until([&] {
    std::byte byte{};
    peer_.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof;
  });
  peer_.close();
  run_until([&] { return socket_ == nullptr; });
}

TEST_F(ConnectionSocketTest, WhoTakesNothingIsCut) {
  log_in();
  lends_ = true;
  ask_for_much();
  socket_->connection().end(EndReason::kKicked, {});
  run_until([&] {
    if (socket_) socket_->tick();
    return socket_ == nullptr;
  });
  EXPECT_FALSE(lent());
}

}  // namespace
}  // namespace mariner::iscsi
