#include "server/volume/thread_worker.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

TEST(ThreadWorker, RunsElsewhereInOrderAndCompletesHere) {
  test::ManualExecutor executor;
  std::vector<int> order;
  std::vector<int> completed;
  const std::thread::id here = std::this_thread::get_id();
  {
    ThreadWorker worker(executor);
    for (int i = 0; i < 50; ++i) {
      worker.run(
          [&order, i, here]() -> Result<void> {
            EXPECT_NE(std::this_thread::get_id(), here);
            order.push_back(i);
            if (i == 7) return Error{ErrorCode::kIo, "seven"};
            return {};
          },
          [&completed, i, here](const Result<void>& result) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            EXPECT_EQ(result.has_value(), i != 7);
            completed.push_back(i);
          });
    }
  }  // finishes what is queued
  EXPECT_EQ(order.size(), 50u);
  EXPECT_TRUE(completed.empty()) << "completions come on the executor";
  executor.run_ready();
  EXPECT_EQ(completed, order);
}

TEST(ThreadWorker, AJobMayWaitForTheGiver) {
  test::ManualExecutor executor;
  ThreadWorker worker(executor);
  std::promise<void> go;
  bool done = false;
  worker.run(
      [wait = go.get_future()]() mutable -> Result<void> {
        wait.get();
        return {};
      },
      [&done](const Result<void>&) { done = true; });
  executor.run_ready();
  EXPECT_FALSE(done);
  go.set_value();
  while (!done) executor.run_ready();
}

}  // namespace
}  // namespace mariner::volume
