#include "tests/bench/cpu_time.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace mariner::bench {
namespace {

constexpr double kBusyS = 0.05;

// Works until the process has used so much more.
void work(double seconds) {
  const double end = CpuTime::of_self().total_s() + seconds;
  while (CpuTime::of_self().total_s() < end) {
  }
}

TEST(CpuTime, OfSelfGrowsWithWorkAndNotWithWaiting) {
  const CpuTime before = CpuTime::of_self();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const CpuTime waited = CpuTime::of_self() - before;
  EXPECT_LT(waited.total_s(), 0.04);
  EXPECT_GE(waited.context_switches, 1);
  work(kBusyS);
  EXPECT_GE((CpuTime::of_self() - before).total_s(), kBusyS);
}

TEST(CpuTime, OfAProcessIsWhatThatProcessKnowsOfItself) {
  const CpuTime self = CpuTime::of_self();
  const CpuTime process = CpuTime::of_process(getpid());
  EXPECT_NEAR(process.total_s(), self.total_s(), 0.05);  // ticks, each of both parts
}

TEST(CpuTime, OfAnotherProcessIsItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    work(kBusyS);
    pause();
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  CpuTime used;
  while (used.total_s() < kBusyS - 0.02 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    used = CpuTime::of_process(child);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GE(used.total_s(), kBusyS - 0.02);
  EXPECT_EQ(CpuTime::of_process(child).total_s(), 0) << "it has ended";
}

TEST(CpuTime, OfNobodyIsNothing) { EXPECT_EQ(CpuTime::of_process(0).total_s(), 0); }

TEST(CpuTime, AProgramsNameMayHaveSpacesAndParentheses) {
  const CpuTime time = CpuTime::of_stat(
      "4711 (a ) 9 (b) S 1 4711 4711 0 -1 4194560 100 0 0 0 250 50 7 8 20 0 1 0 100", 100);
  EXPECT_DOUBLE_EQ(time.user_s, 2.5);
  EXPECT_DOUBLE_EQ(time.system_s, 0.5);
}

TEST(CpuTime, WhatIsCutOffIsNothing) {
  EXPECT_EQ(CpuTime::of_stat("", 100).total_s(), 0);
  EXPECT_EQ(CpuTime::of_stat("4711 (name) S 1 4711", 100).total_s(), 0);
  EXPECT_EQ(CpuTime::of_stat("4711 (name) S 1 4711 4711 0 -1 0 100 0 0 0 250", 100).total_s(), 0);
}

TEST(CpuTime, OfTheMachineHasWhatThisProcessDoes) {
  const CpuTime before = CpuTime::of_machine();
  work(10 * kBusyS);
  EXPECT_GE((CpuTime::of_machine() - before).total_s(), 5 * kBusyS) << "it is sampled";
}

TEST(CpuTime, WhatTheMachineDoesNotDoItselfIsNotItsTime) {
  const CpuTime time = CpuTime::of_machine_stat("cpu  100 20 30 99999 8888 4 6 7777 50 10", 100);
  EXPECT_DOUBLE_EQ(time.user_s, 1.2);
  EXPECT_DOUBLE_EQ(time.system_s, 0.4);
  EXPECT_EQ(CpuTime::of_machine_stat("cpu  100 20 30 99999", 100).total_s(), 0);
  EXPECT_EQ(CpuTime::of_machine_stat("intr 1 2 3 4 5 6 7 8", 100).total_s(), 0);
}

}  // namespace
}  // namespace mariner::bench
