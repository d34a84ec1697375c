// A log that appends to the end of a file which grows, through the page cache, and makes that
// durable with fdatasync(): the "append" logging of the papers. What waits while it writes is
// written together, in the order in which it came.
//
// The writing is done by a thread of its own; append() and the completions are the executor's.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/executor.h"
#include "tests/bench/update_log.h"

namespace mariner::bench {

class AppendLog final : public UpdateLog {
 public:
  // Replaces the file; removes it in the end. `executor` outlives the log.
  static Result<std::unique_ptr<AppendLog>> create(const std::string& path, Executor& executor);
  ~AppendLog() override;

  [[nodiscard]] std::string name() const override { return "a file that grows"; }
  void append(const PayloadSlice& payload, Done done) override;
  [[nodiscard]] std::uint64_t written_bytes() const override { return written_bytes_; }

 private:
  struct Waiting {
    PayloadSlice payload;
    Done done;
  };
  AppendLog(std::string path, int fd, Executor& executor);
  void work();
  [[nodiscard]] Result<void> write(const std::vector<Waiting>& some) const;

  const std::string path_;
  const int fd_;
  Executor& executor_;
  std::uint64_t written_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> waiting_;  // guarded by mutex_
  bool stopping_ = false;         // guarded by mutex_
  std::thread thread_;
};

}  // namespace mariner::bench
