// Where in a track the next batch goes, and when it would be on the medium.
//
// One Placement belongs to one log disk; the log asks it at the last moment before each write.
// It is pure bookkeeping: it does no I/O, reads no clock, and learns about the disk only from what
// it is told here. The order of calls, for the track that is being filled:
//
//   start_track()                       the log has taken a track, fresh or found by recovery
//   place() -> dispatched() -> completed()   for each batch; place() alone may be asked any time,
//                                       also of several disks to find the one that is soonest
//   wants_next_track()                  asked when nothing waits for the disk; if so, the log
//   starts
//                                       the next track at once, where a seek hides best
//   recalibration_due(), recalibration_sector() -> completed()   when the disk has been idle
//
// What always holds: a place lies within the track and touches no sector that was given in `used`
// or dispatched since. Commands to the disk complete in the order in which they were dispatched.
//
// Ranges are in log sectors (geometry.h). Not thread-safe: owned by the log's strand.
// Dissertation 4.2.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "logging/geometry.h"

namespace mariner::logging {

class Placement {
 public:
  using Time = std::chrono::nanoseconds;  // Executor::monotonic_time

  struct Place {
    std::uint64_t sector = 0;  // where the batch would begin
    Time done{0};              // when it would be on the medium, as predicted
  };

  virtual ~Placement() = default;

  // The track that is filled from now on; the one before is forgotten. `used`: what recovery found
  // in it, each range within the track, in any order; empty for a fresh track. An empty `track`:
  // none.
  virtual void start_track(SectorRange track, std::span<const SectorRange> used, Time now) = 0;

  // Where a batch of `sectors` (not 0) would go if it were dispatched at `now`; behind the commands
  // in flight, if there are any. Nothing: it does not fit into this track, or none is started.
  [[nodiscard]] virtual std::optional<Place> place(std::uint32_t sectors, Time now) const = 0;
  // The longest batch in sectors that still fits.
  [[nodiscard]] virtual std::uint32_t room() const = 0;

  // A batch is on its way to `range`, which place() gave. The sectors count as used from here on,
  // also if the write fails.
  virtual void dispatched(SectorRange range, Time now) = 0;
  // The disk has reported the end of a command: a batch, failed or not, a recalibration read, or
  // the read or write that moved the head to a new track. `range`: what the command covered.
  virtual void completed(SectorRange range, Time now) = 0;

  // Whether the rest of the track is better left alone (formula 4.2 against t_switch). Asked when
  // the queue is empty. True, too, when no track is started.
  [[nodiscard]] virtual bool wants_next_track() const = 0;

  // Whether going to the next track takes time, so that it is better done before a batch waits for
  // it.
  [[nodiscard]] virtual bool moves_to_tracks() const = 0;

  // When the head's position should be measured next if nothing else is dispatched before
  // (t_idle); nothing: never.
  [[nodiscard]] virtual std::optional<Time> recalibration_due() const = 0;
  // Where a read of one sector, dispatched at `now`, measures the head's position soonest; right
  // after start_track() it also moves the head there. Nothing: this disk's position is not
  // followed.
  [[nodiscard]] virtual std::optional<std::uint64_t> recalibration_sector(Time now) const = 0;
};

}  // namespace mariner::logging
