// Wakes an event loop at a moment, more precisely and for less than a timer of Boost.Asio's: one
// system call to set it, none when it is due.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

#include "proto/error.h"
#include "server/node/wake_descriptor.h"

namespace mariner::node {

class WakeTimer {
 public:
  // From now on, when it is due, run_one() of `context` ends with `woken` set. Both outlive it. The
  // thread that runs the context, or before it runs.
  static Result<std::unique_ptr<WakeTimer>> make(boost::asio::io_context& context, bool& woken);

  ~WakeTimer();
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  // Due at that moment of Executor::monotonic_time(), at once if it has passed, instead of at the
  // one before. Nothing if it is that already.
  void set(std::chrono::nanoseconds due);

 private:
  explicit WakeTimer(int fd) : fd_(fd) {}

  const int fd_;  // owned
  std::unique_ptr<WakeDescriptor> wake_;
  std::chrono::nanoseconds due_{0};
};

}  // namespace mariner::node
