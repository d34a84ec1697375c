// Whether a thread has so much to do that a part of it is better done by others.
//
// On after two looks in a row at which it worked for the share `from` of the time or more; off
// again when it worked for less than a quarter of that for a second: what the others do is missing
// in what is measured then, and to change costs something.
//
// Pure bookkeeping. One thread.
#pragma once

#include <chrono>
#include <utility>

namespace mariner::iscsi {

class LoadSwitch {
 public:
  using Time = std::chrono::nanoseconds;

  // Between two looks.
  static constexpr Time kInterval = std::chrono::milliseconds(25);

  // 0: always on.
  explicit LoadSwitch(double from) : from_(from), on_(from <= 0) {}

  [[nodiscard]] bool on() const { return on_; }
  // Whether it is time to look.
  [[nodiscard]] bool due(Time now) const { return from_ > 0 && now - looked_ >= kInterval; }
  // `busy`: for how long the thread has worked until `now`, since any time. Requires due(now).
  void look(Time now, Time busy) {
    const Time time = now - std::exchange(looked_, now);
    const Time worked = busy - std::exchange(busy_, busy);
    const double share = static_cast<double>(worked.count()) / static_cast<double>(time.count());
    const bool against = on_ ? share < from_ * kOffShare : share >= from_;
    // Who has not looked for long counts the time, but one look is no load that lasts.
    against_ = against ? against_ + (on_ ? time : kInterval) : Time{0};
    if (against_ < (on_ ? kUntilOff : kUntilOn)) return;
    on_ = !on_;
    against_ = Time{0};
  }

 private:
  static constexpr double kOffShare = 0.25;
  static constexpr Time kUntilOn = 2 * kInterval;
  static constexpr Time kUntilOff = std::chrono::seconds(1);

  double from_;
  bool on_;
  Time looked_{0};
  Time busy_{0};
  Time against_{0};  // for how long the other state has been right
};

}  // namespace mariner::iscsi
