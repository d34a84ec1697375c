// How long the event loop looks for the next event before it sleeps, as an administrator allows it.
//
// To sleep, and to be woken by what a host sends, takes some ten microseconds, in a virtual machine
// up to a few tens. To look instead takes a processor. So it is done while events mostly come
// within what is allowed, and stops as soon as they do not: a server that idles looks for nothing.
//
// Pure bookkeeping. Owner's thread only.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>

namespace mariner::node {

class BusyPoll {
 public:
  using Time = std::chrono::nanoseconds;

  BusyPoll() = default;  // never
  explicit BusyPoll(Time most) : most_(most) {}

  [[nodiscard]] bool allowed() const { return most_ > Time{0}; }
  // It took so long until an event had come and been handled.
  void waited(Time time) { soon_ = soon_ << 1 | (time <= most_ ? 1u : 0u); }
  // How long to look. 0: not at all.
  [[nodiscard]] Time value() const { return std::popcount(soon_) >= kSoonMin ? most_ : Time{0}; }

 private:
  static constexpr int kSoonMin = 24;  // of the last 32

  Time most_{0};
  std::uint32_t soon_ = 0;  // a bit for each of the last waits
};

}  // namespace mariner::node
