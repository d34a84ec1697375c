// Whether a thread has so much to do that a part of it is better done by others.
//
// On after two looks in a row at which it worked for the share `from` of the time or more; off
// again when, for as many as a second has, it worked for less than two fifths of that: what the
// others do is missing in what is measured then, and to change costs something.
//
// Pure bookkeeping. One thread.
#pragma once

#include <chrono>

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
    const double share =
        static_cast<double>((busy - busy_).count()) / static_cast<double>((now - looked_).count());
    looked_ = now;
    busy_ = busy;
    const bool against = on_ ? share < from_ * kOffShare : share >= from_;
    looks_against_ = against ? looks_against_ + 1 : 0;
    if (looks_against_ < (on_ ? kLooksUntilOff : kLooksUntilOn)) return;
    on_ = !on_;
    looks_against_ = 0;
  }

 private:
  static constexpr double kOffShare = 0.4;
  static constexpr int kLooksUntilOn = 2;
  static constexpr int kLooksUntilOff = std::chrono::seconds(1) / kInterval;

  double from_;
  bool on_;
  Time looked_{0};
  Time busy_{0};
  int looks_against_ = 0;  // in a row at which the other state was right
};

}  // namespace mariner::iscsi
