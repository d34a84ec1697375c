// How fast a log may be written to so that it holds a window at all times: the control law of
// `on_full = "throttle"`.
//
// A rate that would fill the room just once in a window could be kept up for ever, and an empty log
// would slow the first burst for nothing. So kReserveShare of the room is for bursts: what is left
// over when the rest is written evenly. Two bounds follow, of which the greater counts:
//   - even: the highest rate that can be kept up from now on for ever, as what was written leaves
//     the window. Who goes on at that rate, or below, never has to slow down any more.
//   - burst: `basic` / (1 - f)^2, where `basic` is the rate that fills all but the reserve in a
//     window, and f is what is left of the reserve: hardly any while it is whole, `basic` when it
//     is used up; but never so much that all that is left would go within kBurstSeconds. What is
//     written beyond `basic` is taken from the reserve, what stays below it is given back. What
//     both bounds did not allow is a debt, so that it does not come again when it leaves the
//     window.
// So who writes too fast from the beginning is not slowed until the reserve has shrunk to where the
// burst's bound meets the rate, then ever more, exponentially towards `basic`; a window later, when
// the burst leaves it, the rate rises to what the log can hold, and stays there.
//
// Both are bounds on what the log is written, not hosts: whatever comes beside (before-images, what
// is logged again) counts as it comes. Where they have not sufficed, because the room has shrunk or
// the log was full of what came before, the even bound alone counts, but not less than an eighth of
// `basic`: then it is for the log to hold up writes.
//
// Invariant: with an exact room, and nobody faster than allowed, what was written in a window never
// exceeds the room, and the rate never has to fall below `basic`. A value: times are arguments.
#pragma once

#include <chrono>
#include <limits>

#include "server/node/window_forecast.h"

namespace mariner::node {

class WindowPace {
 public:
  static constexpr double kReserveShare = 0.25;
  static constexpr double kBurstSeconds = 4;
  static constexpr double kLeastShare = 0.125;  // of the basic rate
  // Errors are made up for within a share of the window; of a short one a larger share, because
  // what comes beside (tracks' worth of before-images) comes in lumps.
  static constexpr std::chrono::seconds::rep kLeewayShare = 32;
  static constexpr std::chrono::seconds::rep kLeewayShareMost = 8;
  static constexpr std::chrono::seconds kLumps{10};

  // What was written to the log since the last call, and how long ago that was.
  struct Since {
    double seconds = 0;
    double bytes = 0;
  };
  // Bytes a second that may be written now. The forecast has been told of all that was written.
  [[nodiscard]] double allowed(const WindowForecast& forecast, const WindowForecast::Held& held,
                               double room_bytes, const Since& since);

 private:
  double reserve_ = std::numeric_limits<double>::max();  // bytes, what is left of it; or a debt
};

}  // namespace mariner::node
