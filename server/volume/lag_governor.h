// How much may be written while an image is behind, and how its writing is portioned.
//
// A burst is taken at the log's speed: up to kBurstShare of lag_bytes_max nobody is slowed. Who
// goes on writing faster than the image takes it is then paced, a few milliseconds at a time, by
// the rate at which the image was measured to take it: at half of it until what is behind fits into
// memory (from there on the image is written from memory, which is faster than from the log), and
// then so that it stays there: faster than the image while there is room, slower when there is
// little. A burst may come again when the image has almost caught up. A writer below the pace waits
// for nothing.
//
// Invariants: never more room than up to lag_bytes_max; over any time, what was admitted under a
// pace is what the pace gave plus at most one write and kCreditTime of it.
//
// Sans I/O: times are arguments. Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>

#include "server/volume/portion_size.h"

namespace mariner::volume {

class LagGovernor {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr double kBurstShare = 0.75;
  static constexpr Duration kCreditTime = std::chrono::milliseconds(10);
  static constexpr Duration kWaitMin = std::chrono::milliseconds(1);

  struct Options {
    std::uint64_t lag_bytes_max = 0;
    std::uint64_t memory_bytes_max = 0;  // of payloads
    std::uint64_t portion_bytes_max = 32u << 20;
  };
  explicit LagGovernor(const Options& options);

  // A portion of what waits in memory became durable in the image.
  struct Portion {
    std::uint64_t lag_bytes = 0;    // by so much the lag fell
    std::uint64_t image_bytes = 0;  // so much was written, overwrites coalesced
    Duration took{0};               // of the image's time: not what it idled before
  };
  void written(const Portion& portion);
  // The same of what had to be fetched.
  void fetched(const Portion& portion);

  // A write was admitted.
  void admitted(std::uint64_t bytes) { credit_ -= static_cast<double>(bytes); }

  // Bytes that may be admitted now, with `lag_bytes` behind or on their way. `now` never goes back.
  std::uint64_t room(std::uint64_t lag_bytes, Duration now);
  // When room() gave nothing: after this time it will, if the lag alone permits; zero if it takes a
  // lower lag.
  [[nodiscard]] Duration wait() const { return wait_; }

  void bound_lag(std::uint64_t lag_bytes_max, std::uint64_t memory_bytes_max);

  // Somebody writes faster than the image takes it, and has been for longer than a burst.
  [[nodiscard]] bool sustained() const { return sustained_; }
  // About so much of what is in memory should be written between two flushes of the image.
  [[nodiscard]] std::uint64_t portion_bytes() const { return portion_.bytes(); }

 private:
  // Bytes a second; 0 for no bound.
  [[nodiscard]] double pace(std::uint64_t lag_bytes) const;

  std::uint64_t lag_bytes_max_;
  std::uint64_t target_bytes_;  // of lag, at most, while writing is sustained
  PortionSize portion_;
  bool sustained_ = false;
  double measured_bytes_ = 0;    // decaying sums: the image's rate is
  double measured_seconds_ = 0;  // one by the other
  double credit_ = 0;            // bytes; negative after a write that was larger
  Duration credited_{0};         // up to this time
  Duration wait_{0};
};

}  // namespace mariner::volume
