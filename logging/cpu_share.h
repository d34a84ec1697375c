// Holds the calling thread to a share of one core: it pauses until the CPU time that it has used,
// and what it may use before its next pause (the most that it ever did), is no more than that share
// of the time that has passed. One thread.
#pragma once

#include <atomic>
#include <chrono>

#include "logging/beside.h"
#include "proto/error.h"

namespace mariner::logging {

class CpuShare {
 public:
  // `share` of one core, above 0; 1: it never pauses. Both may be changed by any thread, and
  // outlive it: when `cancelled` becomes true, pauses end early.
  // What `beside` uses counts, too; it outlives it. Null: there is nobody.
  CpuShare(const std::atomic<double>& share, const std::atomic<bool>& cancelled,
           const Beside* beside = nullptr);

  // kAborted when it was cancelled.
  Result<void> pause();

 private:
  static constexpr std::chrono::milliseconds kStep{20};

  [[nodiscard]] std::chrono::nanoseconds cpu_time() const;

  const std::atomic<double>& share_;
  const std::atomic<bool>& cancelled_;
  const Beside* const beside_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::nanoseconds cpu_began_;
  std::chrono::nanoseconds cpu_last_;  // at the last pause
  std::chrono::nanoseconds most_{0};   // between two pauses
};

}  // namespace mariner::logging
