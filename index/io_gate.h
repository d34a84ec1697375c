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

  // Others are about to use the disk.
  void others_come(std::chrono::nanoseconds now) { polite_until_ = now + options_.polite_for; }
  // There is no time to be polite, or there is again.
  void set_hurry(bool hurry) { hurry_ = hurry; }
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
    return !hurry_ && now < polite_until_;
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
  std::chrono::nanoseconds polite_until_{0};
  bool hurry_ = false;
  std::size_t in_flight_ = 0;
  std::deque<Waiting> waiting_;  // bounded by the runs in flight, or a checkpoint
};

}  // namespace mariner::index
