#include "logging/io_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/logging/temporary_directory.h"
#include "tests/support/manual_executor.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;

class IoRingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = ::open(directory_.file("data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
    make_ring(8);
  }
  void TearDown() override {
    if (ring_) drain();
    ring_.reset();
    ::close(file_);
  }
  void make_ring(unsigned entries) {
    auto ring = IoRing::create(executor_, entries);
    ASSERT_TRUE(ring.has_value()) << to_string(ring.error());
    ring_ = std::move(*ring);
  }
  void drain() {
    while (ring_->in_flight() > 0) {
      ring_->wait();
      executor_.run_ready();
    }
  }
  void write(const std::string& text, std::uint64_t offset, IoRing::Completion done) {
    ring_->write(file_, {{const_cast<char*>(text.data()), text.size()}}, offset, 0,
                 std::move(done));
  }

  test::TemporaryDirectory directory_;
  ManualExecutor executor_;
  int file_ = -1;
  std::unique_ptr<IoRing> ring_;
};

TEST_F(IoRingTest, WritesAndReadsSeveralPieces) {
  std::string a = "abc";
  std::string b = "defgh";
  std::int64_t result = 0;
  ring_->write(file_, {{a.data(), a.size()}, {b.data(), b.size()}}, 10, 0,
               [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, 8);
  std::string c(5, '.');
  std::string d(3, '.');
  ring_->read(file_, {{c.data(), c.size()}, {d.data(), d.size()}}, 10, 0,
              [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, 8);
  EXPECT_EQ(c + d, "abcdefgh");
}

TEST_F(IoRingTest, ATurnsRequestsAreSubmittedAtItsEnd) {
  const std::string text = "x";
  int done = 0;
  for (int i = 0; i < 5; ++i)
    write(text, static_cast<std::uint64_t>(i), [&](std::int64_t) { ++done; });
  ring_->reap();
  EXPECT_EQ(done, 0);
  EXPECT_EQ(ring_->in_flight(), 5u);
  executor_.run_ready();
  drain();
  EXPECT_EQ(done, 5);
}

TEST_F(IoRingTest, BecomesReadableWhenSomethingCompletes) {
  const std::string text = "x";
  bool done = false;
  pollfd poller{ring_->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poller, 1, 0), 0);
  write(text, 0, [&](std::int64_t) { done = true; });
  executor_.run_ready();
  ASSERT_EQ(::poll(&poller, 1, 10'000), 1);
  ring_->reap();
  EXPECT_TRUE(done);
}

TEST_F(IoRingTest, MoreThanTheRingHoldsWaitTheirTurn) {
  make_ring(2);
  const std::string text = "x";
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) {
    write(text, static_cast<std::uint64_t>(i), [&order, i](std::int64_t n) {
      EXPECT_EQ(n, 1);
      order.push_back(i);
    });
  }
  EXPECT_EQ(ring_->in_flight(), 50u);
  drain();
  EXPECT_EQ(order.size(), 50u);
  EXPECT_EQ(::lseek(file_, 0, SEEK_END), 50);
}

TEST_F(IoRingTest, ACompletionMayBeginTheNextRequest) {
  const std::string text = "x";
  int done = 0;
  std::function<void()> next = [&] {
    write(text, 0, [&](std::int64_t) {
      if (++done < 20) next();
    });
  };
  next();
  drain();
  EXPECT_EQ(done, 20);
}

TEST_F(IoRingTest, ErrorsAreNegativeNumbers) {
  const std::string text = "x";
  std::int64_t result = 0;
  ring_->write(-1, {{const_cast<char*>(text.data()), 1}}, 0, 0,
               [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, -EBADF);
  std::string to(10, '.');
  ring_->read(file_, {{to.data(), to.size()}}, 1 << 20, 0, [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, 0) << "behind the end of the file";
}

TEST_F(IoRingTest, OneRefusedRequestDoesNotHoldUpTheOthers) {
  std::string text = "x";
  std::vector<std::int64_t> results(4, 99);
  for (int i = 0; i < 4; ++i) {
    ring_->write(file_, {{text.data(), 1}}, 0, i == 1 ? 0x40000000 : 0,
                 [&results, i](std::int64_t n) { results[static_cast<std::size_t>(i)] = n; });
  }
  drain();
  EXPECT_EQ(results, (std::vector<std::int64_t>{1, -EOPNOTSUPP, 1, 1}));
}

TEST_F(IoRingTest, DeferredWorkMayOutliveTheRing) {
  const std::string text = "x";
  bool done = false;
  write(text, 0, [&](std::int64_t) { done = true; });
  ring_->wait();  // submits itself; the deferred submission is still to come
  EXPECT_TRUE(done);
  ring_.reset();
  executor_.run_ready();
}

}  // namespace
}  // namespace mariner::logging
