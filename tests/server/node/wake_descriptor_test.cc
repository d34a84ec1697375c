#include "server/node/wake_descriptor.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

namespace mariner::node {
namespace {

class WakeDescriptorTest : public ::testing::Test {
 protected:
  ~WakeDescriptorTest() override { ::close(fd_); }
  void signal() { ASSERT_EQ(::eventfd_write(fd_, 1), 0); }
  void empty() {
    eventfd_t value = 0;
    ASSERT_EQ(::eventfd_read(fd_, &value), 0);
  }
  // Whether the descriptor woke the context. Never blocks: something else is always ready.
  bool woken() {
    woken_ = false;
    bool other = false;
    boost::asio::post(context_, [&] { other = true; });
    while (!other) context_.run_one();
    while (context_.poll_one() != 0) {
    }
    return woken_;
  }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  const int fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  bool woken_ = false;
};

TEST_F(WakeDescriptorTest, WakesWithEachEventWithoutBeingArmedAgain) {
  const auto wake = WakeDescriptor::watch(context_, fd_, woken_);
  ASSERT_TRUE(wake.has_value());
  EXPECT_FALSE(woken());
  for (int i = 0; i < 3; ++i) {
    signal();
    EXPECT_TRUE(woken()) << i;
    empty();
    EXPECT_FALSE(woken()) << i;
  }
}

TEST_F(WakeDescriptorTest, WhatIsLeftUnreadWakesOnceOnly) {
  const auto wake = WakeDescriptor::watch(context_, fd_, woken_);
  signal();
  EXPECT_TRUE(woken());
  EXPECT_FALSE(woken());
  signal();
  EXPECT_TRUE(woken());
}

TEST_F(WakeDescriptorTest, WhatWasReadableBeforeCounts) {
  signal();
  const auto wake = WakeDescriptor::watch(context_, fd_, woken_);
  EXPECT_TRUE(woken());
}

TEST_F(WakeDescriptorTest, EndsABlockingTurn) {
  const auto wake = WakeDescriptor::watch(context_, fd_, woken_);
  signal();
  EXPECT_EQ(context_.run_one(), 1u);
  EXPECT_TRUE(woken_);
}

TEST_F(WakeDescriptorTest, IsSilentWhenItIsGone) {
  { const auto wake = WakeDescriptor::watch(context_, fd_, woken_); }
  signal();
  EXPECT_FALSE(woken());
}

TEST_F(WakeDescriptorTest, SaysWhatItCannotWatch) {
  EXPECT_FALSE(WakeDescriptor::watch(context_, -1, woken_).has_value());
  EXPECT_FALSE(woken());
}

}  // namespace
}  // namespace mariner::node
