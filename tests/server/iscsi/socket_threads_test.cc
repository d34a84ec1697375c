#include "server/iscsi/socket_threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

// A stream with both of its ends.
class Pair {
 public:
  Pair() { CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_.data()) == 0); }
  ~Pair() {
    close_peer();
    ::close(fds_[0]);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  [[nodiscard]] int ours() const { return fds_[0]; }
  [[nodiscard]] int peer() const { return fds_[1]; }
  void peer_sends(std::span<const std::byte> bytes) {
    ASSERT_EQ(::write(fds_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // What is there.
  Bytes peer_receives() {
    Bytes bytes(1 << 20);
    const ssize_t count = ::recv(fds_[1], bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  void close_peer() {
    if (fds_[1] >= 0) ::close(std::exchange(fds_[1], -1));
  }

 private:
  std::array<int, 2> fds_{};
};

struct Heard final : SocketClient {
  void receive_done(std::size_t bytes, int error_number) override {
    received = bytes;
    receive_error = error_number;
    if (on_receive) on_receive();
  }
  void send_done(int error_number) override { send_error = error_number; }

  std::optional<std::size_t> received;
  int receive_error = 0;
  std::optional<int> send_error;
  std::function<void()> on_receive;
};

class SocketThreadsTest : public testing::Test {
 protected:
  SocketThreadsTest() {
    auto started = SocketThreads::start(2, executor_);
    CHECK(started);
    threads_ = std::move(*started);
  }
  void run_until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < limit) {
      context_.run_one_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(done());
  }
  static bool bytes_waiting(int fd) {
    std::byte byte{};
    return ::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
  }
  static iovec place(Bytes& bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  AsioExecutor executor_{context_};
  std::unique_ptr<SocketThreads> threads_;
};

TEST_F(SocketThreadsTest, ReceivesWhatComesBeforeAndAfterItIsAskedFor) {
  Pair pair;
  Heard heard;
  Bytes first(3);
  Bytes second(100);
  const std::array places = {place(first), place(second)};
  const auto loan = threads_->lend(pair.ours(), heard);
  ASSERT_TRUE(loan);
  for (int round = 0; round < 200; ++round) {
    const Bytes sent = pattern(3 + static_cast<std::size_t>(round) % 100, round + 1);
    if (round % 2 == 0) pair.peer_sends(sent);
    loan->receive(places, 1);
    EXPECT_TRUE(loan->receiving());
    if (round % 2 == 1) pair.peer_sends(sent);
    run_until([&] { return heard.received.has_value(); });
    ASSERT_FALSE(HasFailure());
    EXPECT_FALSE(loan->receiving());
    ASSERT_EQ(heard.received, sent.size());
    Bytes got = first;
    got.insert(got.end(), second.begin(), second.end());
    got.resize(sent.size());
    EXPECT_EQ(got, sent);
    heard.received.reset();
  }
}

// A place that is filled says nothing of what else is there.
TEST_F(SocketThreadsTest, ReceivesPartByPart) {
  Pair pair;
  Heard heard;
  const Bytes sent = pattern(1000);
  pair.peer_sends(sent);
  Bytes part(100);
  const auto loan = threads_->lend(pair.ours(), heard);
  Bytes got;
  while (got.size() < sent.size()) {
    const iovec to = place(part);
    loan->receive({&to, 1}, 1);
    run_until([&] { return heard.received.has_value(); });
    ASSERT_FALSE(HasFailure());
    const auto bytes = static_cast<std::ptrdiff_t>(*std::exchange(heard.received, std::nullopt));
    got.insert(got.end(), part.begin(), part.begin() + bytes);
  }
  EXPECT_EQ(got, sent);
}

TEST_F(SocketThreadsTest, ReceivesUntilItIsEnough) {
  Pair pair;
  Heard heard;
  Bytes first(1000);
  Bytes second(100);
  const auto loan = threads_->lend(pair.ours(), heard);
  const Bytes sent = pattern(1000);
  for (int round = 0; round < 20; ++round) {
    loan->receive(std::array{place(first), place(second)}, 1000);
    for (std::size_t at = 0; at < 1000; at += 100) {
      EXPECT_FALSE(heard.received);
      pair.peer_sends(std::span(sent).subspan(at, 100));
      context_.run_for(std::chrono::milliseconds(round == 0 ? 2 : 0));
    }
    run_until([&] { return heard.received.has_value(); });
    EXPECT_EQ(std::exchange(heard.received, std::nullopt), 1000u);
    EXPECT_EQ(first, sent);
  }
}

TEST_F(SocketThreadsTest, WhatIsNotEnoughIsToldWhenTheStreamEndsOrItIsTakenBack) {
  Pair pair;
  Heard heard;
  Bytes bytes(1000);
  const iovec to = place(bytes);
  const auto loan = threads_->lend(pair.ours(), heard);
  loan->receive({&to, 1}, 1000);
  pair.peer_sends(pattern(300));
  // Until the thread has it.
  run_until([&] {
    return !loan->receiving() || (!bytes_waiting(pair.ours()) && !loan->take_back_receive());
  });
  run_until([&] { return heard.received.has_value(); });
  EXPECT_EQ(std::exchange(heard.received, std::nullopt), 300u);
  EXPECT_FALSE(loan->receiving());
  loan->receive({&to, 1}, 1000);
  pair.peer_sends(pattern(200));
  pair.close_peer();
  for (const std::size_t expected : {200u, 0u}) {
    run_until([&] { return heard.received.has_value(); });
    EXPECT_EQ(std::exchange(heard.received, std::nullopt), expected);
    EXPECT_EQ(heard.receive_error, 0);
    if (expected > 0) loan->receive({&to, 1}, 1000);
  }
}

TEST_F(SocketThreadsTest, TheEndIsHeardOfBehindTheLastBytes) {
  Pair pair;
  Heard heard;
  Bytes bytes(100);
  const auto loan = threads_->lend(pair.ours(), heard);
  pair.peer_sends(pattern(10));
  pair.close_peer();
  const iovec to = place(bytes);
  for (const std::size_t expected : {10u, 0u, 0u}) {
    loan->receive({&to, 1}, 1);
    run_until([&] { return heard.received.has_value(); });
    EXPECT_EQ(std::exchange(heard.received, std::nullopt), expected);
    EXPECT_EQ(heard.receive_error, 0);
  }
  const Bytes more = pattern(10);
  const iovec from = {.iov_base = const_cast<std::byte*>(more.data()), .iov_len = more.size()};
  loan->send({&from, 1});
  run_until([&] { return heard.send_error.has_value(); });
  EXPECT_EQ(heard.send_error, EPIPE);
}

// More than the socket takes at once, to a peer that takes its time.
TEST_F(SocketThreadsTest, SendsAllOfIt) {
  Pair pair;
  Heard heard;
  Bytes sent = pattern(3'000'000);
  const auto loan = threads_->lend(pair.ours(), heard);
  std::vector<iovec> places;
  for (std::size_t at = 0; at < sent.size();) {
    const std::size_t bytes = std::min<std::size_t>(1 + at / 3, sent.size() - at);
    places.push_back({.iov_base = sent.data() + at, .iov_len = bytes});
    at += bytes;
  }
  loan->send(places);
  EXPECT_TRUE(loan->sending());
  Bytes got;
  run_until([&] {
    const Bytes part = pair.peer_receives();
    got.insert(got.end(), part.begin(), part.end());
    return got.size() == sent.size();
  });
  run_until([&] { return heard.send_error.has_value(); });
  EXPECT_EQ(heard.send_error, 0);
  EXPECT_FALSE(loan->sending());
  EXPECT_TRUE(got == sent);
}

TEST_F(SocketThreadsTest, ReceivesWhileItCannotSend) {
  Pair pair;
  Heard heard;
  Bytes much(3'000'000);
  Bytes bytes(10);
  const auto loan = threads_->lend(pair.ours(), heard);
  const iovec from = place(much);
  loan->send({&from, 1});
  const iovec to = place(bytes);
  for (int i = 0; i < 10; ++i) {
    loan->receive({&to, 1}, 1);
    pair.peer_sends(pattern(5));
    run_until([&] { return heard.received.has_value(); });
    EXPECT_EQ(std::exchange(heard.received, std::nullopt), 5u);
  }
  EXPECT_TRUE(loan->sending());
}

TEST_F(SocketThreadsTest, WhatWasAskedForCanBeTakenBack) {
  Pair pair;
  Heard heard;
  Bytes bytes(10);
  const auto loan = threads_->lend(pair.ours(), heard);
  const iovec to = place(bytes);
  loan->receive({&to, 1}, 1);
  ASSERT_TRUE(loan->take_back_receive());
  EXPECT_FALSE(loan->receiving());
  pair.peer_sends(pattern(5));
  // Nobody reads it; a loan that does something else is heard of.
  const iovec from = {.iov_base = bytes.data(), .iov_len = 1};
  loan->send({&from, 1});
  run_until([&] { return heard.send_error.has_value(); });
  EXPECT_FALSE(heard.received);
  loan->receive({&to, 1}, 1);
  run_until([&] { return heard.received.has_value(); });
  EXPECT_EQ(heard.received, 5u);
}

TEST_F(SocketThreadsTest, NothingIsHeardOfALoanThatHasEnded) {
  Pair pair;
  Pair other;
  Heard heard;
  Heard other_heard;
  Bytes bytes(10);
  Bytes other_bytes(10);
  const iovec to = place(bytes);
  auto loan = threads_->lend(pair.ours(), heard);
  auto other_loan = threads_->lend(other.ours(), other_heard);
  // The other one may be heard of first, or in the same turn.
  other_heard.on_receive = [&] { loan.reset(); };
  heard.on_receive = [&] { other_loan.reset(); };
  pair.peer_sends(pattern(5));
  other.peer_sends(pattern(5));
  loan->receive({&to, 1}, 1);
  const iovec other_to = place(other_bytes);
  other_loan->receive({&other_to, 1}, 1);
  run_until([&] { return heard.received || other_heard.received; });
  context_.run_for(std::chrono::milliseconds(20));
  EXPECT_NE(heard.received.has_value(), other_heard.received.has_value());
  EXPECT_EQ(threads_->lent(), 1u);
}

// Of sockets that always have something to do.
TEST_F(SocketThreadsTest, BusySocketsKeepNoOtherWaiting) {
  constexpr std::size_t kBusy = 8;
  std::array<Pair, kBusy> pairs;
  std::array<Heard, kBusy> heard;
  std::array<Bytes, kBusy> bytes;
  std::array<std::unique_ptr<SocketLoan>, kBusy> loans;
  std::size_t rounds = 0;
  for (std::size_t i = 0; i < kBusy; ++i) {
    loans[i] = threads_->lend(pairs[i].ours(), heard[i]);
    bytes[i].resize(64);
    const auto again = [&, i] {
      const iovec to = place(bytes[i]);
      pairs[i].peer_sends(bytes[i]);
      loans[i]->receive({&to, 1}, 1);
    };
    heard[i].on_receive = [&rounds, again] {
      ++rounds;
      again();
    };
    again();
  }
  Pair quiet;
  Heard quiet_heard;
  Bytes some(10);
  const auto loan = threads_->lend(quiet.ours(), quiet_heard);
  const iovec to = place(some);
  loan->receive({&to, 1}, 1);
  run_until([&] { return rounds > 1000; });
  quiet.peer_sends(pattern(5));
  run_until([&] { return quiet_heard.received.has_value(); });
  EXPECT_EQ(quiet_heard.received, 5u);
}

TEST_F(SocketThreadsTest, LoansAreSpread) {
  std::array<Pair, 6> pairs;
  Heard heard;
  std::vector<std::unique_ptr<SocketLoan>> loans;
  for (const Pair& pair : pairs) loans.push_back(threads_->lend(pair.ours(), heard));
  EXPECT_EQ(threads_->lent(), 6u);
  loans.clear();
  EXPECT_EQ(threads_->lent(), 0u);
}

TEST_F(SocketThreadsTest, WhatIsNoSocketIsNotLent) {
  Heard heard;
  EXPECT_EQ(threads_->lend(-1, heard), nullptr);
  EXPECT_EQ(threads_->lent(), 0u);
}

}  // namespace
}  // namespace mariner::iscsi
