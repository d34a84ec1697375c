// A worker without a thread: a job runs in one turn of the test's executor, its completion in a
// later one.
#pragma once

#include <memory>
#include <utility>

#include "proto/executor.h"
#include "server/volume/worker.h"

namespace mariner::test {

class InlineWorker final : public volume::Worker {
 public:
  explicit InlineWorker(Executor& executor) : executor_(executor) {}

  void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done) override {
    executor_.post([this, job = std::move(job), done = std::move(done)]() mutable {
      ++jobs_;
      executor_.post([done = std::move(done), result = job()]() mutable { done(result); });
    });
  }

  [[nodiscard]] std::size_t jobs() const { return jobs_; }

 private:
  Executor& executor_;
  std::size_t jobs_ = 0;
};

}  // namespace mariner::test
