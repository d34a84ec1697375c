#include "server/node/wake_timer.h"

#include <gtest/gtest.h>
#include <time.h>

#include <boost/asio/executor_work_guard.hpp>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class WakeTimerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto timer = WakeTimer::make(context_, woken_);
    ASSERT_TRUE(timer.has_value()) << to_string(timer.error());
    timer_ = std::move(*timer);
  }
  // Until it is woken.
  void sleep() {
    woken_ = false;
    while (!woken_) context_.run_one();
  }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  bool woken_ = false;
  std::unique_ptr<WakeTimer> timer_;
};

TEST_F(WakeTimerTest, WakesEachTimeItIsDueAndNotBefore) {
  for (int i = 0; i < 100; ++i) {
    const auto due = now() + std::chrono::microseconds(i);
    timer_->set(due);
    sleep();
    EXPECT_GE(now(), due) << i;
  }
}

TEST_F(WakeTimerTest, WhatHasPassedIsDueAtOnce) {
  timer_->set(0ns);  // the same as at first: never
  timer_->set(1ns);
  sleep();
  timer_->set(-1s);
  sleep();
}

TEST_F(WakeTimerTest, ANewMomentTakesThePlaceOfTheOldOne) {
  timer_->set(now() + 24h);
  const auto due = now() + 1ms;
  timer_->set(due);
  timer_->set(due);
  sleep();
  EXPECT_GE(now(), due);
  // Set again for what it has been woken for: nothing is due.
  timer_->set(due);
  woken_ = false;
  context_.poll();
  EXPECT_FALSE(woken_);
}

}  // namespace
}  // namespace mariner::node
