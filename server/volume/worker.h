// A thread for work that blocks: applying to images, importing, and other file-system calls.
//
// Jobs run one after another; each job's completion is posted to the Executor. Any thread may give
// work; the queue is bounded by its users, which each have at most one job in it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "proto/error.h"
#include "proto/executor.h"

namespace mariner::volume {

class Worker {
 public:
  explicit Worker(Executor& executor);
  ~Worker();  // finishes what is queued; completions are posted all the same
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `job` on the thread, then `done` with its result on the Executor.
  void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done);

 private:
  struct Item {
    UniqueFunction<Result<void>()> job;
    UniqueFunction<void(Result<void>)> done;
  };
  void loop();

  Executor& executor_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mariner::volume
