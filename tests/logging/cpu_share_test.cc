#include "logging/cpu_share.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void work_for(std::chrono::nanoseconds time) {
  const auto begin = cpu_time();
  while (cpu_time() - begin < time) {
  }
}

TEST(CpuShareTest, WhoWorksPausesUntilItsShareIsKept) {
  const std::atomic<double> share{0.25};
  const std::atomic<bool> cancelled{false};
  const auto began = std::chrono::steady_clock::now();
  CpuShare cpu(share, cancelled);
  for (int i = 0; i < 5; ++i) {
    work_for(10ms);
    ASSERT_TRUE(cpu.pause().has_value());
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, 240ms)
      << "50 ms, and the next 10, are a quarter of it";
}

TEST(CpuShareTest, WhatHappensBesideCounts) {
  const std::atomic<double> share{0.25};
  const std::atomic<bool> cancelled{false};
  Beside beside("share-test");
  const auto began = std::chrono::steady_clock::now();
  CpuShare cpu(share, cancelled, &beside);
  ASSERT_TRUE(beside
                  .begin([]() -> Result<void> {
                    work_for(50ms);
                    return {};
                  })
                  .get());
  ASSERT_TRUE(cpu.pause().has_value());
  EXPECT_GE(std::chrono::steady_clock::now() - began, 200ms);
}

TEST(CpuShareTest, AWholeCoreIsNeverHeldBack) {
  const std::atomic<double> share{1};
  const std::atomic<bool> cancelled{false};
  CpuShare cpu(share, cancelled);
  const auto slept = [&] {
    work_for(20ms);
    const auto before = std::chrono::steady_clock::now();
    EXPECT_TRUE(cpu.pause().has_value());
    return std::chrono::steady_clock::now() - before;
  };
  // Another process may hold it up, but not each time.
  EXPECT_TRUE(slept() < 10ms || slept() < 10ms || slept() < 10ms);
}

TEST(CpuShareTest, ALargerShareEndsThePause) {
  std::atomic<double> share{0.0001};  // 10 ms of work are 100 s
  const std::atomic<bool> cancelled{false};
  const std::jthread owner([&] {
    std::this_thread::sleep_for(50ms);
    share = 1;
  });
  CpuShare cpu(share, cancelled);
  work_for(10ms);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(cpu.pause().has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - before, 50s);
}

TEST(CpuShareTest, CancellingEndsThePauseAndThoseToCome) {
  const std::atomic<double> share{0.0001};
  std::atomic<bool> cancelled{false};
  const std::jthread owner([&] {
    std::this_thread::sleep_for(50ms);
    cancelled = true;
  });
  CpuShare cpu(share, cancelled);
  work_for(10ms);
  const Result<void> paused = cpu.pause();
  ASSERT_FALSE(paused.has_value());
  EXPECT_EQ(paused.error().code, ErrorCode::kAborted);
  EXPECT_FALSE(cpu.pause().has_value());
}

}  // namespace
}  // namespace mariner::logging
