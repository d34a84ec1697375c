#include "server/volume/thread_worker.h"

#include <utility>

namespace mariner::volume {

ThreadWorker::ThreadWorker(Executor& executor) : executor_(executor), thread_([this] { loop(); }) {}

ThreadWorker::~ThreadWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ThreadWorker::run(UniqueFunction<Result<void>()> job,
                       UniqueFunction<void(Result<void>)> done) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(job), std::move(done)});
  }
  wake_.notify_one();
}

void ThreadWorker::loop() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    Result<void> result = item.job();
    executor_.post([done = std::move(item.done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
}

}  // namespace mariner::volume
