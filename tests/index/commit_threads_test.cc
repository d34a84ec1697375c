#include "index/commit_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using index::CommitThreads;

TEST(CommitThreads, WithoutThreadsTheOwnerWorksAtOnceAndIsToldLater) {
  ManualExecutor executor;
  CommitThreads threads(executor, 0);
  std::string events;
  threads.run([&] { events += 'w'; }, [&] { events += 'd'; });
  EXPECT_EQ(events, "w");
  executor.run_ready();
  EXPECT_EQ(events, "wd");
}

TEST(CommitThreads, WorkIsDoneElsewhereAndItsEndIsToldToTheOwner) {
  ManualExecutor executor;
  const std::thread::id owner = std::this_thread::get_id();
  constexpr int kJobs = 100;
  std::atomic<int> worked = 0;
  int done = 0;
  {
    CommitThreads threads(executor, 2);
    for (int i = 0; i < kJobs; ++i) {
      threads.run(
          [&] {
            EXPECT_NE(std::this_thread::get_id(), owner);
            ++worked;
          },
          [&] {
            EXPECT_EQ(std::this_thread::get_id(), owner);
            ++done;
          });
    }
    while (done < kJobs) {
      executor.run_ready();
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(worked, kJobs);
}

}  // namespace
}  // namespace mariner::test
