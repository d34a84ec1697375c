// What the times of single commands say about a rotating disk: how fast it turns, and at which
// angles its sectors lie.
//
// A command for a sector ends when the sector has passed under the head, whenever it was given. So
// two commands for the same sector end whole revolutions apart, and a command for another sector
// between them divides this time at the angle from the one to the other. The constant parts of a
// command's time drop out, and so does the slow wandering of the speed, which is measured anew by
// each such round. What comes late by accident is sorted out: a round must take whole revolutions,
// and three rounds must agree:
// of two, late by the same accident, there would be one in every few dozen extractions.
//
// Reads no clock and does no I/O of its own. Dissertation 3.2.1 (formula 3.1, there run backwards).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "proto/error.h"

namespace mariner::logging {

// The disk under measurement.
class TimedDisk {
 public:
  using Time = std::chrono::nanoseconds;

  virtual ~TimedDisk() = default;
  // Reads or writes this one sector on the medium, past every cache, and returns the time of its
  // completion by a clock that never goes back.
  virtual Result<Time> access(std::uint64_t sector) = 0;
};

// The value in [-0.5, 0.5) that is as far around the circle.
[[nodiscard]] double around(double revolutions);

class PhaseMeter {
 public:
  using Time = TimedDisk::Time;

  static constexpr int kRepetitions = 64;
  static constexpr int kRoundsMax = 25;
  static constexpr int kAgreeing = 3;
  // Of two phases that agree, in revolutions. At 7,200 a minute, 0.13 ms.
  static constexpr double kAgreement = 0.016;

  // No command more than `commands_max` is given: kLimit then.
  PhaseMeter(TimedDisk& disk, std::uint64_t commands_max)
      : disk_(disk), commands_left_(commands_max) {}

  // How long the commands took that asked for one sector again and again.
  struct Repetition {
    Time least{0};
    Time median{0};
    Time most{0};
    // Nearly all were whole multiples of the median, as if something turned. A constant latency
    // looks the same: whether the phases differ decides.
    bool steady = false;
  };
  // Gives kRepetitions + 1 commands. If they are steady, phase() takes their median for the
  // rotation.
  Result<Repetition> repeat(std::uint64_t sector);

  // By how much `to` comes by later than `from`, in revolutions, [0, 1). Gives 2 * kAgreeing + 1
  // commands, up to 2 * kRoundsMax + 1 if there is noise; kLimit if no kAgreeing rounds agree.
  // Requires a steady repeat().
  Result<double> phase(std::uint64_t from, std::uint64_t to);

  // The median of all revolutions measured so far. Requires a steady repeat().
  [[nodiscard]] Time rotation() const;
  [[nodiscard]] std::uint64_t commands() const { return commands_; }

 private:
  Result<Time> access(std::uint64_t sector);

  TimedDisk& disk_;
  std::uint64_t commands_left_;
  std::uint64_t commands_ = 0;
  double rotation_ns_ = 0;           // as of repeat()
  std::vector<double> revolutions_;  // in ns; at most one for each two commands, and kRepetitions
};

}  // namespace mariner::logging
