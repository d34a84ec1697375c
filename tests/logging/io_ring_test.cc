#include "logging/io_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/logging/submit_spy.h"
#include "tests/logging/temporary_directory.h"
#include "tests/support/manual_executor.h"

namespace mariner::logging {
namespace {

using mariner::test::ManualExecutor;
using test::submit_spy;

// On this kernel, and as on an old one.
class IoRingTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    file_ = ::open(directory_.file("data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
    make_ring(8);
  }
  void TearDown() override {
    submit_spy().reset();
    if (ring_) drain();
    ring_.reset();
    ::close(file_);
  }
  void make_ring(unsigned entries) {
    auto ring = IoRing::create(executor_, {.entries = entries, .basic = GetParam()});
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
    const IoRing::Bytes part = bytes_of(text);
    ring_->write(file_, {&part, 1}, offset, 0, std::move(done));
  }
  static IoRing::Bytes bytes_of(const std::string& text) {
    return std::as_bytes(std::span<const char>(text));
  }
  // What a write with a flush behind it answers, once.
  std::int64_t write_and_flush(int file, const std::string& text, std::uint64_t offset) {
    std::vector<std::int64_t> answers;
    const IoRing::Bytes part = bytes_of(text);
    ring_->write_and_flush(file, {&part, 1}, offset, [&](std::int64_t n) { answers.push_back(n); });
    EXPECT_TRUE(answers.empty()) << "never before the call has returned";
    drain();
    EXPECT_EQ(answers.size(), 1u);
    return answers.at(0);
  }

  test::TemporaryDirectory directory_;
  ManualExecutor executor_;
  int file_ = -1;
  std::unique_ptr<IoRing> ring_;
};

TEST_P(IoRingTest, SubmitsAtTheEndOfATurnOrNow) {
  submit_spy().reset();
  std::int64_t moved = 0;
  write("abc", 0, [&](std::int64_t n) { moved = n; });
  EXPECT_EQ(submit_spy().writes, 0u) << "the turn is not over";
  ring_->submit_now();
  EXPECT_EQ(submit_spy().writes, 1u);
  executor_.run_ready();
  EXPECT_EQ(submit_spy().writes, 1u) << "once";
  drain();
  EXPECT_EQ(moved, 3);
}

TEST_P(IoRingTest, WritesAndReadsSeveralPieces) {
  std::string a = "abc";
  std::string b = "defgh";
  std::int64_t result = 0;
  {
    const IoRing::Bytes parts[] = {bytes_of(a), bytes_of(b)};  // gone before it is submitted
    ring_->write(file_, parts, 10, 0, [&](std::int64_t n) { result = n; });
  }
  drain();
  EXPECT_EQ(result, 8);
  std::string c(8, '.');
  ring_->read(file_, std::as_writable_bytes(std::span(c)), 10, 0,
              [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, 8);
  EXPECT_EQ(c, "abcdefgh");
}

TEST_P(IoRingTest, ATurnsRequestsAreSubmittedAtItsEnd) {
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

TEST_P(IoRingTest, BecomesReadableWhenSomethingCompletes) {
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

TEST_P(IoRingTest, MoreThanTheRingHoldsWaitTheirTurn) {
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

TEST_P(IoRingTest, ACompletionMayBeginTheNextRequest) {
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

TEST_P(IoRingTest, ErrorsAreNegativeNumbers) {
  const std::string text = "x";
  std::int64_t result = 0;
  const IoRing::Bytes part = bytes_of(text);
  ring_->write(-1, {&part, 1}, 0, 0, [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, -EBADF);
  std::string to(10, '.');
  ring_->read(file_, std::as_writable_bytes(std::span(to)), 1 << 20, 0,
              [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, 0) << "behind the end of the file";
}

TEST_P(IoRingTest, OneRefusedRequestDoesNotHoldUpTheOthers) {
  std::string text = "x";
  std::vector<std::int64_t> results(4, 99);
  for (int i = 0; i < 4; ++i) {
    const IoRing::Bytes part = bytes_of(text);
    ring_->write(file_, {&part, 1}, 0, i == 1 ? 0x40000000 : 0,
                 [&results, i](std::int64_t n) { results[static_cast<std::size_t>(i)] = n; });
  }
  drain();
  EXPECT_EQ(results, (std::vector<std::int64_t>{1, -EOPNOTSUPP, 1, 1}));
}

TEST_P(IoRingTest, AdviceIsTakenOrRefused) {
  std::int64_t result = 1;
  ring_->advise(file_, 0, 4096, POSIX_FADV_WILLNEED, [&](std::int64_t n) { result = n; });
  EXPECT_EQ(result, 1) << "never before the call has returned";
  drain();
  EXPECT_EQ(result, 0);
  ring_->advise(file_, 0, 4096, 99, [&](std::int64_t n) { result = n; });
  drain();
  EXPECT_EQ(result, -EINVAL);
}

TEST_P(IoRingTest, AWriteWithItsFlushIsOneRequest) {
  EXPECT_EQ(write_and_flush(file_, "abcdefgh", 3), 8);
  std::string to(8, '.');
  EXPECT_EQ(::pread(file_, to.data(), to.size(), 3), 8);
  EXPECT_EQ(to, "abcdefgh");
  EXPECT_EQ(submit_spy().writes, 1u);
  EXPECT_EQ(submit_spy().linked_flushes, 1u);
  EXPECT_EQ(submit_spy().unlinked_flushes, 0u);
}

TEST_P(IoRingTest, AFailedWriteIsNotFlushedAndFails) {
  EXPECT_EQ(write_and_flush(-1, "x", 0), -EBADF);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(write_and_flush(full, "x", 0), -ENOSPC);
  ::close(full);
  EXPECT_EQ(write_and_flush(file_, "x", 0), 1) << "the ring goes on";
}

TEST_P(IoRingTest, AFailedFlushOfAGoodWriteIsAFailure) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(write_and_flush(ends[1], "x", 0), -EINVAL) << "nobody can flush a pipe";
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "but write to it";
  EXPECT_EQ(byte, 'x');
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(IoRingTest, AShortWriteSaysHowShort) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  EXPECT_EQ(write_and_flush(ends[1], std::string(10'000, 'x'), 0), 4096);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(IoRingTest, WritesWithFlushesFillTheRingInTheirTurn) {
  make_ring(4);
  const std::string text = "x";
  const IoRing::Bytes part = bytes_of(text);
  int done = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto answer = [&done](std::int64_t n) { done += n == 1 ? 1 : 0; };
    if (i % 3 == 0) {
      ring_->write(file_, {&part, 1}, i, 0, answer);
    } else {
      ring_->write_and_flush(i % 5 == 4 ? -1 : file_, {&part, 1}, i, answer);
    }
  }
  EXPECT_EQ(ring_->in_flight(), 50u);
  drain();
  EXPECT_EQ(submit_spy().writes, 50u);
  EXPECT_EQ(submit_spy().linked_flushes, 33u);
  EXPECT_EQ(submit_spy().unlinked_flushes, 0u) << "a full ring parts no pair";
  EXPECT_EQ(done, 43) << "all but the seven that had no file";
}

TEST_P(IoRingTest, AKernelThatTakesFewEntriesGetsTheRestLater) {
  submit_spy().taken_at_most = 1;
  const std::string text = "x";
  int done = 0;
  for (std::uint64_t i = 0; i < 5; ++i) write(text, i, [&](std::int64_t n) { done += n == 1; });
  drain();
  EXPECT_EQ(done, 5);
}

// The flush may have begun before the write ended, so it says nothing about it.
TEST_P(IoRingTest, AWriteThatWasTakenWithoutItsFlushHasFailed) {
  submit_spy().taken_at_most = 1;
  EXPECT_EQ(write_and_flush(file_, "abc", 0), -EAGAIN);
  submit_spy().taken_at_most = 2;
  EXPECT_EQ(write_and_flush(file_, "abc", 0), 3);
  // Three entries of four: the first pair is whole, the second is not.
  submit_spy().taken_at_most = 3;
  const std::string text = "abc";
  const IoRing::Bytes part = bytes_of(text);
  std::vector<std::int64_t> answers(2, 99);
  for (std::size_t i = 0; i < 2; ++i) {
    ring_->write_and_flush(file_, {&part, 1}, 0, [&answers, i](std::int64_t n) { answers[i] = n; });
  }
  drain();
  EXPECT_EQ(answers, (std::vector<std::int64_t>{3, -EAGAIN}));
}

TEST_P(IoRingTest, AFlushIsOneEntryOfItsOwn) {
  std::int64_t answer = 99;
  write("abc", 0, [](std::int64_t) {});
  drain();
  ring_->flush(file_, [&](std::int64_t n) { answer = n; });
  EXPECT_EQ(answer, 99) << "never before the call has returned";
  drain();
  EXPECT_EQ(answer, 0);
  EXPECT_EQ(submit_spy().unlinked_flushes, 1u);
  EXPECT_EQ(submit_spy().linked_flushes, 0u);
  EXPECT_EQ(submit_spy().data_flushes, 1u) << "of the data alone";
  // A request's memory that comes back after a flush is as good as new.
  std::int64_t moved = 0;
  write("defg", 3, [&](std::int64_t n) { moved = n; });
  drain();
  EXPECT_EQ(moved, 4);
}

TEST_P(IoRingTest, AFailedFlushSaysWhy) {
  std::int64_t answer = 99;
  ring_->flush(-1, [&](std::int64_t n) { answer = n; });
  drain();
  EXPECT_EQ(answer, -EBADF);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ring_->flush(ends[1], [&](std::int64_t n) { answer = n; });
  drain();
  EXPECT_EQ(answer, -EINVAL) << "nobody can flush a pipe";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(IoRingTest, FlushesWaitTheirTurnInAFullRing) {
  make_ring(2);
  int done = 0;
  for (int i = 0; i < 50; ++i) ring_->flush(file_, [&](std::int64_t n) { done += n == 0 ? 1 : 0; });
  EXPECT_EQ(ring_->in_flight(), 50u);
  drain();
  EXPECT_EQ(done, 50);
}

TEST_P(IoRingTest, DeferredWorkMayOutliveTheRing) {
  const std::string text = "x";
  bool done = false;
  write(text, 0, [&](std::int64_t) { done = true; });
  ring_->wait();  // submits itself; the deferred submission is still to come
  EXPECT_TRUE(done);
  ring_.reset();
  executor_.run_ready();
}

INSTANTIATE_TEST_SUITE_P(Kernel, IoRingTest, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Old" : "This"; });

}  // namespace
}  // namespace mariner::logging
