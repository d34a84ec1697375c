#include "server/node/wake_timer.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>

#include "server/node/event_loop.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

class WakeTimerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto timer = WakeTimer::make(context_, woken_);
    ASSERT_TRUE(timer.has_value()) << to_string(timer.error());
    timer_ = std::move(*timer);
  }
  void run_until_woken() {
    woken_ = false;
    while (!woken_) context_.run_one();
  }

  [[nodiscard]] std::chrono::nanoseconds now() const { return loop_.monotonic_time(); }

  EventLoop loop_;  // whose clock counts
  boost::asio::io_context& context_ = loop_.context();
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  bool woken_ = false;
  std::unique_ptr<WakeTimer> timer_;
};

TEST_F(WakeTimerTest, WakesEachTimeItIsDueAndNotBefore) {
  for (int i = 0; i < 100; ++i) {
    const auto due = now() + std::chrono::microseconds(i);
    timer_->set(due);
    run_until_woken();
    EXPECT_GE(now(), due) << i;
  }
}

TEST_F(WakeTimerTest, WhatHasPassedIsDueAtOnce) {
  timer_->set(0ns);  // the same as at first: never
  timer_->set(1ns);
  run_until_woken();
  timer_->set(-1s);
  run_until_woken();
}

TEST_F(WakeTimerTest, ANewMomentTakesThePlaceOfTheOldOne) {
  timer_->set(now() + 24h);
  const auto due = now() + 1ms;
  timer_->set(due);
  timer_->set(due);
  run_until_woken();
  EXPECT_GE(now(), due);
  // Set again for what it has been woken for: nothing is due.
  timer_->set(due);
  woken_ = false;
  context_.poll();
  EXPECT_FALSE(woken_);
}

}  // namespace
}  // namespace mariner::node
