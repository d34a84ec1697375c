#include "index/commit_threads.h"

#include <utility>

#include "proto/check.h"

namespace mariner::index {

CommitThreads::CommitThreads(Executor& executor, unsigned threads) : executor_(executor) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

CommitThreads::~CommitThreads() {
  const std::lock_guard lock(mutex_);
  CHECK_MSG(jobs_.empty(), "commit threads are destroyed with work to do");
}

void CommitThreads::run(UniqueFunction<void()> work, UniqueFunction<void()> done) {
  if (threads_.empty()) {
    work();
    return executor_.post(std::move(done));
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), std::move(done)});
  }
  changed_.notify_one();
}

void CommitThreads::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.work();
    executor_.post(std::move(job.done));
    lock.lock();
  }
}

}  // namespace mariner::index
