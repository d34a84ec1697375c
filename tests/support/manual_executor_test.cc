#include "tests/support/manual_executor.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace mariner::test {
namespace {

using namespace std::chrono_literals;

TEST(ManualExecutor, RunsNothingByItself) {
  ManualExecutor executor;
  bool ran = false;
  executor.post([&] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_FALSE(executor.idle());
  executor.run_ready();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(executor.idle());
}

TEST(ManualExecutor, DeferredWorkRunsBehindWhatWasPosted) {
  ManualExecutor executor;
  std::string order;
  executor.defer([&] { order += 'd'; });
  executor.post([&] {
    order += 'a';
    executor.post([&] { order += 'c'; });
  });
  executor.post([&] { order += 'b'; });
  executor.run_ready();
  EXPECT_EQ(order, "abdc");
}

TEST(ManualExecutor, ATurnDoesNotRunWhatItCauses) {
  ManualExecutor executor;
  executor.defer([&] { executor.post([] {}); });
  EXPECT_EQ(executor.turn(), 1u);
  EXPECT_EQ(executor.turn(), 1u);
  EXPECT_EQ(executor.turn(), 0u);
}

TEST(ManualExecutor, TheClockMovesOnlyWhenTold) {
  ManualExecutor executor;
  const auto start = executor.wall_time();
  std::string order;
  executor.after(2ms, [&] { order += 'b'; });
  executor.after(1ms, [&] {
    order += 'a';
    EXPECT_EQ(executor.monotonic_time(), 1ms);
  });
  executor.after(2ms, [&] { order += 'c'; });
  executor.run_ready();
  EXPECT_EQ(order, "");
  executor.advance(1500us);
  EXPECT_EQ(order, "a");
  EXPECT_EQ(executor.monotonic_time(), 1500us);
  executor.run_until_idle();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(executor.wall_time().ns - start.ns, 2'000'000u);
}

TEST(ManualExecutor, TimersSetByTimersRunWithinTheSameAdvance) {
  ManualExecutor executor;
  int count = 0;
  executor.after(1ms, [&] {
    ++count;
    executor.after(1ms, [&] { ++count; });
  });
  executor.advance(2ms);
  EXPECT_EQ(count, 2);
}

TEST(ManualExecutor, OtherThreadsMayPost) {
  ManualExecutor executor;
  int count = 0;
  std::thread([&] { executor.post([&] { ++count; }); }).join();
  executor.run_ready();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace mariner::test
