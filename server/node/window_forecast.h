// When the log will be too small for a window, if it is written to as it was of late.
//
// A log keeps for a window what was written within it. How much that will be at a later time, is
// told by what came when: as the window moves on, what was written in the past leaves it, and what
// is written at the present rate comes in. So a log that is being filled for the first time, or
// more quickly than before, is known to be too small long before it is full.
//
// A value: the owner samples it, and asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/units.h"

namespace mariner::node {

class WindowForecast {
 public:
  static constexpr std::size_t kSamplesMax = 1024;
  // What counts as the present rate: that of so long, or of what there was.
  static constexpr std::chrono::seconds kRecent{300};

  // At the beginning: the log holds `used` bytes, which came between both times, evenly for all
  // that is known.
  void begin(VersionTime oldest, VersionTime now, std::uint64_t used_bytes);
  // So much was written to the log since then, in all. Times that are not later than the last one
  // (a clock was set back) change nothing.
  void sample(VersionTime now, std::uint64_t written_bytes);

  struct Outlook {
    // From when on the log does not hold all of the window; nothing: that is not foreseen. Counted
    // from the last sample; 0: by now.
    std::optional<std::chrono::seconds> short_in;
    // How much of it the log holds in the end.
    std::chrono::seconds lasting{0};
  };
  // For a window, in a log that has room for so many bytes. Nothing while no rate is known.
  [[nodiscard]] std::optional<Outlook> outlook(std::chrono::seconds window,
                                               std::uint64_t room_bytes) const;
  // Bytes a second.
  [[nodiscard]] std::optional<double> rate() const;

  // What the log is to hold at any time to come: what was written within the window, but nothing
  // from before `from`.
  struct Held {
    std::chrono::seconds window{0};
    VersionTime from;
  };
  // Bytes that may come from now on, beyond those that come at `bytes_per_second` for ever, so that
  // what is to be held fits into the room at all times. Negative: even these are too many.
  [[nodiscard]] double spare(const Held& held, double room_bytes, double bytes_per_second) const;
  // The highest rate, in bytes a second, that can be kept up from now on without end; what the next
  // `leeway` alone would need does not count. Negative: the log is that much too small for now.
  [[nodiscard]] double sustainable(const Held& held, double room_bytes,
                                   std::chrono::seconds leeway) const;

 private:
  struct Sample {
    double at = 0;     // seconds
    double bytes = 0;  // that had come by then, ever
  };
  void thin_out();
  // That had come by `at`, as far as that is known.
  [[nodiscard]] double come_by(double at) const;
  // Tells, for times from now on, how much more may have come by then: at `first`, the window's
  // length, and wherever in between it does not go on evenly.
  template <class Visitor>
  void visit_room(const Held& held, double room_bytes, double first, const Visitor& visitor) const;

  std::vector<Sample> samples_;  // in order; a share of their age apart, or more
  double used_at_begin_ = 0;
};

}  // namespace mariner::node
