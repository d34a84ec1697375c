// Blocking I/O beside the thread that wants it: what is begun here happens on another thread, one
// after the other, while its owner goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "proto/error.h"

namespace mariner::logging {

class Beside {
 public:
  // `name`: of the thread, up to 15 characters.
  explicit Beside(const char* name);
  ~Beside();  // when everything that was begun has ended
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // What `work` refers to must outlive it: wait for the result.
  [[nodiscard]] std::future<Result<void>> begin(std::function<Result<void>()> work);

  // What it has used of a processor. Any thread.
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const;

 private:
  using Task = std::packaged_task<Result<void>()>;

  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // guarded by mutex_
  bool ending_ = false;     // guarded by mutex_
  std::thread thread_;
};

}  // namespace mariner::logging
