// A worker without a thread: a job runs in one turn of the test's executor, its completion in a
// later one, after as long as the test says that the job takes.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "proto/executor.h"
#include "server/volume/worker.h"

namespace mariner::test {

class InlineWorker final : public volume::Worker {
 public:
  explicit InlineWorker(Executor& executor) : executor_(executor) {}

  // Asked after each job. By default none takes any time.
  void set_duration(std::function<std::chrono::nanoseconds()> duration) {
    duration_ = std::move(duration);
  }

  void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done) override {
    jobs_waiting_.push_back({std::move(job), std::move(done)});
    if (jobs_waiting_.size() == 1) run_later();
  }

  [[nodiscard]] std::size_t jobs() const { return jobs_; }

 private:
  struct Item {
    UniqueFunction<Result<void>()> job;
    UniqueFunction<void(Result<void>)> done;
  };

  void run_later() {
    executor_.post([this] {
      ++jobs_;
      const Result<void> result = jobs_waiting_.front().job();
      const auto took = duration_ ? duration_() : std::chrono::nanoseconds(0);
      auto finish = [this, result] {
        Item item = take();
        if (!jobs_waiting_.empty()) run_later();
        item.done(result);
      };
      if (took.count() > 0) {
        executor_.after(took, std::move(finish));
      } else {
        executor_.post(std::move(finish));
      }
    });
  }
  Item take() {
    Item item = std::move(jobs_waiting_.front());
    jobs_waiting_.pop_front();
    return item;
  }

  Executor& executor_;
  std::function<std::chrono::nanoseconds()> duration_;
  std::deque<Item> jobs_waiting_;
  std::size_t jobs_ = 0;
};

}  // namespace mariner::test
