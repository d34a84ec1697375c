// Which log disk gets a request, and when its batch goes: the dispatch policy of the array.
//
// Each disk has a queue, in which requests gather to become one batch. One disk is active: it gets
// the requests as they come, until the oldest of its queue has waited for `t_wait`, or until the
// next one does not fit into the batch or the track. Then its batch is due, and the disk that could
// write the request soonest, together with what waits in its queue already, becomes active. So
// batching comes before the earliest moment, and t_wait bounds what that costs.
//
// A request that finds nothing queued and an idle disk is due at once: waiting would be for
// nothing. A batch that is due while its disk is busy goes when the disk is free, and gathers on
// until then; where in the track it goes is decided only at that moment, and how much of the queue
// it takes (batch_length.h).
//
// A disk whose placement wants the next track gets no more requests until it is there, and goes
// there as soon as it is idle. The dissertation moves on only when the queue happens to be empty.
// Under steady load that never happens: tracks fill up to the last gap, each write waits for one,
// queues grow, longer batches find fewer gaps, and the array does not recover from it.
//
// Pure bookkeeping in bytes and times, no I/O, no clock, no memory of the requests themselves:
// the log holds those, one queue per disk, in the order of assign(). After every call that tells it
// something the log asks next_switch() and next_dispatch() until they have nothing more, and makes
// sure to ask again at wake(). Not thread-safe: owned by the log's strand.
// Dissertation 4.2, "Low-Latency Disk Array Logging", and for the second trigger 4.6.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "logging/placement.h"

namespace mariner::logging {

class ActiveDisk {
 public:
  using Time = Placement::Time;
  static constexpr std::size_t kDisksMax = 64;

  struct Options {
    Time t_wait{std::chrono::microseconds(200)};
    std::uint32_t batch_bytes_max = 0;  // required; of one batch, without overhead_bytes
    std::uint32_t overhead_bytes = 0;   // that a batch occupies besides its requests
  };

  explicit ActiveDisk(const Options& options);

  // Takes a disk into the array, idle and with nothing queued. The placement, which counts in
  // sectors of `sector_bytes`, must outlive this or the disk's removal. Returns the disk's number;
  // those of removed disks are given again. Requires fewer than kDisksMax disks.
  std::size_t add(const Placement& placement, std::uint32_t sector_bytes);
  // The disk gets no more requests; what is queued goes out as usual.
  void drain(std::size_t disk);
  // Nothing queued, nothing in flight: a drained disk can be removed.
  [[nodiscard]] bool drained(std::size_t disk) const;
  // Forgets the disk, what is queued on it and what is in flight, of which completed() must not be
  // called any more: assign those requests again.
  void remove(std::size_t disk);

  // The disk for a request of `bytes` (1 to batch_bytes_max), which counts as queued there from
  // now on. Nothing: no disk has room, or an idle one goes on to its next track for it rather than
  // let it wait for a busy one; try again when a command has completed or a track has been started.
  std::optional<std::size_t> assign(std::uint32_t bytes, Time now);

  // Whether the disk has a track to go on to; at first it does. One that has none fills the track
  // that it is on.
  void set_next_track(std::size_t disk, bool available) { at(disk).has_next = available; }
  // Whether a request that assign() has refused need only wait, for a batch to leave or a disk to
  // switch; otherwise there is no room for it.
  [[nodiscard]] bool may_take_later(std::uint32_t bytes, Time now) const;

  // A disk that is idle and that should go on to its next track: because its placement wants to,
  // because the request that is next in line does not fit, because there is no room for requests as
  // they usually come, or because assign() found no room on any disk, or none but on busy ones; of
  // no room at all, the disk with the least room is the consequence, one at a time. The disk counts
  // as busy until completed(), to be called when the head is there.
  std::optional<std::size_t> next_switch();
  // A disk that is idle and whose queue is due: it goes out now, as one batch, where its placement
  // says. The disk counts as busy until completed().
  std::optional<std::size_t> next_dispatch(Time now);
  // What of a queue just taken from next_dispatch() did not go with the batch: it is queued and
  // due.
  struct Rest {
    std::uint32_t bytes = 0;        // not 0
    std::uint32_t first_bytes = 0;  // of its first request
    Time oldest{0};                 // when that had arrived
  };
  void put_back(std::size_t disk, const Rest& rest);
  // What is queued on the disk is no longer: assign those requests again.
  void clear_queue(std::size_t disk);

  // A command of the log's own, such as a recalibration read, occupies the disk until completed().
  // Requires an idle disk.
  void occupied(std::size_t disk);
  [[nodiscard]] bool idle(std::size_t disk) const { return !at(disk).busy; }
  // The batch, the switch or the log's own command is done.
  void completed(std::size_t disk);

  // When next_dispatch() may have something although nothing else happens; nothing: never.
  [[nodiscard]] std::optional<Time> wake() const;

  [[nodiscard]] std::optional<std::size_t> active() const { return active_; }
  [[nodiscard]] std::uint32_t queued_bytes(std::size_t disk) const { return at(disk).queued; }

 private:
  struct Disk {
    const Placement* placement = nullptr;  // null: the number is free
    std::uint32_t sector_bytes = 0;
    bool draining = false;
    bool busy = false;
    bool due = false;        // dispatch as soon as it is idle
    bool leaving = false;    // gets no more requests until it is on its next track
    bool switching = false;  // given by next_switch()
    bool has_next = true;    // a track to go on to
    std::uint32_t queued = 0;
    std::uint32_t first = 0;  // bytes of the first of the queue
    Time oldest{0};           // arrival of the first of the queue
  };

  [[nodiscard]] const Disk& at(std::size_t disk) const;
  [[nodiscard]] Disk& at(std::size_t disk);
  [[nodiscard]] bool may_wait(const Disk& disk, Time now) const;
  // Of a batch of `bytes`, on the disk.
  [[nodiscard]] std::uint32_t batch_sectors(const Disk& disk, std::uint64_t bytes) const;
  [[nodiscard]] bool takes_requests(const Disk& disk) const;
  [[nodiscard]] bool batch_is_full(std::uint32_t bytes, Time now) const;
  [[nodiscard]] std::optional<Time> write_time(const Disk& disk, std::uint32_t bytes,
                                               Time now) const;
  [[nodiscard]] bool nothing_queued() const;
  [[nodiscard]] bool needs_next_track(const Disk& disk) const;
  [[nodiscard]] std::optional<std::size_t> choose(std::uint32_t bytes, Time now) const;
  [[nodiscard]] Disk* idle_without_room(std::uint32_t bytes, Time now);
  void make_room();

  const Options options_;
  std::vector<Disk> disks_;
  std::optional<std::size_t> active_;
  std::uint32_t usual_eighths_ = 0;  // bytes of a request, a moving average, times eight
};

}  // namespace mariner::logging
