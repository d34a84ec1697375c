#include "logging/beside.h"

#include <pthread.h>

#include <ctime>
#include <utility>

namespace mariner::logging {

Beside::Beside(const char* name) : thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), name);
}

Beside::~Beside() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::future<Result<void>> Beside::begin(std::function<Result<void>()> work) {
  Task task(std::move(work));
  std::future<Result<void>> result = task.get_future();
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return result;
}

void Beside::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

std::chrono::nanoseconds Beside::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  // (The thread lives as long as this does.)
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0 ||
      ::clock_gettime(clock, &time) != 0) {
    return {};
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace mariner::logging
