// How long the event loop looks for the next event before it sleeps, as an administrator allows it.
//
// To sleep, and to be woken by what a host sends, takes some ten microseconds, in a virtual machine
// up to a few tens, of processor time, too. To look instead takes a processor. So it is done while
// events mostly come within what is allowed, and stops as soon as they do not: a server that idles
// looks for nothing. Unless it is told otherwise it looks only while nothing is under way but what
// hosts may send, and for not much longer than sleeping would cost.
//
// Pure bookkeeping. Owner's thread only.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace mariner::node {

class BusyPoll {
 public:
  using Time = std::chrono::nanoseconds;

  static constexpr Time kUnlessToldOtherwise = std::chrono::microseconds(50);

  // For so long, whatever it waits for; 0: never; none: as suits a machine with so many processors.
  // One that is alone has better to do.
  explicit BusyPoll(std::optional<Time> most = Time{0}, std::size_t processors = 0)
      : most_(most.value_or(processors > 1 ? kUnlessToldOtherwise : Time{0})), hosts_only_(!most) {}

  // Whether it may look, and this wait counts, with something under way or without.
  [[nodiscard]] bool allowed(bool under_way) const {
    return most_ > Time{0} && !(hosts_only_ && under_way);
  }
  // It took so long until an event had come and been handled.
  void waited(Time time) { soon_ = soon_ << 1 | (time <= most_ ? 1u : 0u); }
  // How long to look. 0: not at all.
  [[nodiscard]] Time value() const { return std::popcount(soon_) >= kSoonMin ? most_ : Time{0}; }

 private:
  static constexpr int kSoonMin = 24;  // of the last 32

  Time most_;
  bool hosts_only_;
  std::uint32_t soon_ = 0;  // a bit for each of the last waits
};

}  // namespace mariner::node
