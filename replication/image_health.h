// Whether an image can be counted on: how often in a row its disk has failed, and for how long.
//
// Sans I/O. An error is no failure yet: a disk may be reset, or be full for a moment. An image has
// failed when so many attempts to bring something into it failed in a row, the first of them so
// long ago. Then it is left alone for a while, and tried: one more error is enough then, and it is
// left alone for twice as long, so that a disk that comes and goes does not have its image built
// anew again and again. What ends a row is that more of the image is durable: that one part of it
// can be written says nothing about the part that cannot.
//
// Told of are attempts that the image's own disk has spoilt, and no others: not what the log, the
// network or another node refuses. The log refuses before-images when it is full, which is just
// when an image must not be thrown away.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "proto/error.h"

namespace mariner::replication {

class ImageHealth {
 public:
  struct Options {
    std::uint32_t failures_min = 3;
    std::chrono::nanoseconds failing_min = std::chrono::seconds(10);
    // How long it is left alone at first (longer than CoordinatorRole::Options::absent_for_room, so
    // that a log that is full need not wait for the first try) and at most.
    std::chrono::nanoseconds rest_min = std::chrono::seconds(15);
    std::chrono::nanoseconds rest_max = std::chrono::hours(1);
    // One that has worked for so long since is left alone for rest_min when it fails again.
    std::chrono::nanoseconds sound_after = std::chrono::hours(1);
  };

  explicit ImageHealth(const Options& options) : options_(options), rest_(options.rest_min) {}

  // An attempt has failed. True: with this one the image has failed.
  [[nodiscard]] bool failed(const Error& why, std::chrono::nanoseconds now);
  // More of it is durable than was. True: it had failed, and has not any more.
  [[nodiscard]] bool worked(std::chrono::nanoseconds now);
  // It is to be tried, as if it had not failed.
  void try_again(std::chrono::nanoseconds now);

  // Nothing: it can be counted on.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // For how long one that has failed is to be left alone.
  [[nodiscard]] std::chrono::nanoseconds rest() const { return rest_; }

 private:
  const Options options_;
  std::optional<Error> failure_;
  std::uint32_t failures_ = 0;                 // in a row
  std::chrono::nanoseconds failing_since_{0};  // ... the first of them
  std::chrono::nanoseconds rest_;
  std::optional<std::chrono::nanoseconds> back_since_;  // after it had failed; nothing: never
  bool trying_ = false;
};

}  // namespace mariner::replication
