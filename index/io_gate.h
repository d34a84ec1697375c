// Lets the transfers of commits through to the disk: as many as come, or, while others use the
// disk, only few bytes at a time, so that those do not stand behind megabytes. Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

#include "proto/unique_function.h"

namespace mariner::index {

class IoGate {
 public:
  struct Options {
    std::size_t polite_bytes = 128 << 10;      // at a time beside others
    std::chrono::milliseconds polite_for{20};  // after the last sign of them
  };
  explicit IoGate(const Options& options) : options_(options) {}

  // Somebody waits for a read: commits make way, whatever it costs them.
  void others_read(std::chrono::nanoseconds now) { readers_until_ = now + options_.polite_for; }
  // Others write: commits make way unless there is no time for that.
  void others_write(std::chrono::nanoseconds now, bool hurry) {
    writers_until_ = now + options_.polite_for;
    hurry_ = hurry;
  }
  // The length that one transfer should have at most.
  [[nodiscard]] std::size_t piece_bytes(std::chrono::nanoseconds now) const {
    return polite(now) ? options_.polite_bytes : SIZE_MAX;
  }

  // Calls `begin` now or when it is its turn; ended() must follow when the transfer has.
  void pass(std::size_t bytes, std::chrono::nanoseconds now, UniqueFunction<void()> begin) {
    waiting_.push_back({bytes, std::move(begin)});
    let_through(now);
  }
  void ended(std::size_t bytes, std::chrono::nanoseconds now) {
    in_flight_ -= bytes;
    let_through(now);
  }

 private:
  struct Waiting {
    std::size_t bytes = 0;
    UniqueFunction<void()> begin;
  };
  [[nodiscard]] bool polite(std::chrono::nanoseconds now) const {
    return now < readers_until_ || (!hurry_ && now < writers_until_);
  }
  void let_through(std::chrono::nanoseconds now) {
    while (!waiting_.empty() && (in_flight_ == 0 || !polite(now) ||
                                 in_flight_ + waiting_.front().bytes <= options_.polite_bytes)) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      in_flight_ += next.bytes;
      next.begin();
    }
  }

  const Options options_;
  std::chrono::nanoseconds readers_until_{0};
  std::chrono::nanoseconds writers_until_{0};
  bool hurry_ = false;
  std::size_t in_flight_ = 0;
  std::deque<Waiting> waiting_;  // bounded by the runs in flight, or a checkpoint
};

}  // namespace mariner::index
