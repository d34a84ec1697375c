// Threads that apply what is queued to blocks that have been read: the part of a commit that takes
// processor time, off the thread that owns the store.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "proto/executor.h"

namespace mariner::index {

class CommitThreads {
 public:
  // 0 threads: work is done by the owner at once.
  CommitThreads(Executor& executor, unsigned threads);
  ~CommitThreads();  // nothing is in flight
  CommitThreads(const CommitThreads&) = delete;
  CommitThreads& operator=(const CommitThreads&) = delete;

  // Runs `work` on one of the threads, and then `done` on the owner's, in a later turn. Owner's
  // thread only.
  void run(UniqueFunction<void()> work, UniqueFunction<void()> done);

 private:
  struct Job {
    UniqueFunction<void()> work;
    UniqueFunction<void()> done;
  };
  void work(const std::stop_token& stop);

  Executor& executor_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> jobs_;  // guarded by mutex_; bounded by the runs in flight
  std::vector<std::jthread> threads_;
};

}  // namespace mariner::index
