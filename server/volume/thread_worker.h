// A worker with a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "proto/executor.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class ThreadWorker final : public Worker {
 public:
  explicit ThreadWorker(Executor& executor);
  ~ThreadWorker() override;  // finishes what is queued; completions are posted all the same
  ThreadWorker(const ThreadWorker&) = delete;
  ThreadWorker& operator=(const ThreadWorker&) = delete;

  void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done) override;

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
