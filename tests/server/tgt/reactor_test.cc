// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/reactor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/server/tgt/tgtd_stand_in.h"

namespace mariner::tgt {
namespace {

using std::chrono::milliseconds;

struct Recorder final : Watched {
  void ready(std::uint32_t events) override {
    seen |= events;
    ++times_ready;
    if (on_ready) on_ready();
  }
  void due() override {
    ++times_due;
    if (again) deadline = Clock::now() + *again;
  }
  std::uint32_t seen = 0;
  int times_ready = 0;
  int times_due = 0;
  std::optional<milliseconds> again;
  std::function<void()> on_ready;
};

// What tgtd's loop does with the one descriptor that it has.
bool turn(milliseconds wait) {
  pollfd one{.fd = stand_in.event_fd, .events = POLLIN, .revents = 0};
  if (::poll(&one, 1, static_cast<int>(wait.count())) <= 0) return false;
  stand_in.handler(stand_in.event_fd, EPOLLIN, stand_in.handler_data);
  return true;
}

Reactor& reactor() {
  std::string fault;
  Reactor* of_tgtd = Reactor::of_tgtd(fault);
  EXPECT_NE(of_tgtd, nullptr) << fault;
  return *of_tgtd;
}

TEST(TgtReactor, IsAddedToTgtdOnce) {
  Reactor& first = reactor();
  const int fd = stand_in.event_fd;
  EXPECT_GE(fd, 0);
  EXPECT_EQ(&reactor(), &first);
  EXPECT_EQ(stand_in.event_fd, fd);
  EXPECT_FALSE(turn(milliseconds(0)));
}

TEST(TgtReactor, ADescriptorIsServedUntilItIsGone) {
  Recorder recorder;
  const int fd = ::eventfd(1, EFD_CLOEXEC);
  ASSERT_TRUE(reactor().watch(fd, EPOLLIN, recorder));
  EXPECT_TRUE(turn(milliseconds(100)));
  EXPECT_EQ(recorder.seen, EPOLLIN);
  reactor().change(fd, EPOLLOUT, recorder);
  EXPECT_TRUE(turn(milliseconds(100)));
  EXPECT_EQ(recorder.seen, EPOLLIN | EPOLLOUT);
  reactor().unwatch(fd);
  EXPECT_FALSE(turn(milliseconds(0)));
  EXPECT_EQ(recorder.times_ready, 2);
  ::close(fd);
}

TEST(TgtReactor, DeadlinesComeInTheirOrderAndOnce) {
  Recorder early;
  Recorder late;
  reactor().add(late);
  reactor().add(early);
  late.deadline = Clock::now() + milliseconds(60);
  reactor().deadlines_changed();
  early.deadline = Clock::now() + milliseconds(10);
  reactor().deadlines_changed();
  EXPECT_TRUE(turn(milliseconds(1000)));
  EXPECT_EQ(early.times_due, 1);
  EXPECT_EQ(late.times_due, 0);
  EXPECT_FALSE(early.deadline);
  EXPECT_TRUE(turn(milliseconds(1000)));
  EXPECT_EQ(early.times_due, 1);
  EXPECT_EQ(late.times_due, 1);
  EXPECT_FALSE(turn(milliseconds(20)));
  reactor().remove(early);
  reactor().remove(late);
}

TEST(TgtReactor, ADeadlineSetWhenOneIsDueIsKept) {
  Recorder recorder;
  recorder.again = milliseconds(5);
  reactor().add(recorder);
  recorder.deadline = Clock::now();
  reactor().deadlines_changed();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(turn(milliseconds(1000)));
    EXPECT_EQ(recorder.times_due, i);
  }
  reactor().remove(recorder);
  turn(milliseconds(50));  // the timer that was set for it
  EXPECT_EQ(recorder.times_due, 3);
}

// A socket that is replaced when a deadline passes has no event of the same turn left.
TEST(TgtReactor, DeadlinesAreLookedAtBehindEvents) {
  Recorder recorder;
  const int fd = ::eventfd(1, EFD_CLOEXEC);
  int due_before = -1;
  recorder.on_ready = [&] { due_before = recorder.times_due; };
  reactor().add(recorder);
  recorder.deadline = Clock::now();
  reactor().deadlines_changed();
  ::usleep(2000);
  ASSERT_TRUE(reactor().watch(fd, EPOLLIN, recorder));
  EXPECT_TRUE(turn(milliseconds(1000)));
  EXPECT_EQ(due_before, 0);
  EXPECT_EQ(recorder.times_due, 1);
  reactor().remove(recorder);
  reactor().unwatch(fd);
  ::close(fd);
}

}  // namespace
}  // namespace mariner::tgt
