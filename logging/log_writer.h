// The log writer: makes records durable, in batches, on an array of log disks.
//
// A record is given to a disk as the policy says (active_disk.h): one disk is active and gathers
// records, and what waits for a disk becomes its next batch, one at a time on each disk. A record
// that finds an idle disk leaves at the end of the event-loop turn in which it came, so that a
// burst becomes one batch and a lone writer waits for nobody (dissertation 4.2; design.md section
// 6).
//
// Invariants: a record's completion runs only after its batch is on stable storage. Completions of
// a volume's records on one disk run in the order of append(), those of several volumes or disks do
// not: what waits goes by the volumes' turns (waiting_records.h). What a failed or hanging disk has
// not finished is written elsewhere under the same numbers.
//
// Owner's thread only. Bounds: what is queued is bounded by the coordinator's admission
// (replication/write_coordinator.h); a batch by Options.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "logging/active_disk.h"
#include "logging/base_rest.h"
#include "logging/log_batch.h"
#include "logging/log_disk.h"
#include "logging/ordinal_frontier.h"
#include "logging/waiting_records.h"
#include "logging/withdrawn.h"
#include "proto/executor.h"

namespace mariner::logging {

class LogWriter {
 public:
  struct Options {
    std::uint32_t batch_bytes_max = 4u << 20;
    // The last tracks, which ordinary records leave (Urgency).
    std::uint32_t reserve_tracks = 2;
    // How long a batch may gather on a busy disk before another disk becomes active.
    std::chrono::nanoseconds t_wait = std::chrono::microseconds(200);
    // A batch that takes longer is written to another disk, if there is one.
    std::chrono::nanoseconds t_fail = std::chrono::seconds(5);
  };
  using Urgency = logging::Urgency;
  using Appended = PendingRecord::Appended;

  // What happened to one batch, for metrics.
  struct BatchReport {
    std::uint8_t disk = 0;
    std::uint32_t records = 0;
    std::uint32_t bytes = 0;               // as written, headers included
    std::chrono::nanoseconds duration{0};  // from dispatch to durable
  };
  // Payload that was given to the log since the start, in bytes, by why it was logged: the rest
  // beside what hosts wrote is write amplification.
  struct Payloads {
    std::uint64_t written = 0;
    std::uint64_t before_images = 0;
    std::uint64_t moved = 0;  // before-images in the place of a version whose track is given up
    std::uint64_t kept = 0;   // written again for moments behind the window
  };
  // What became of a disk, for logs and metrics.
  enum class DiskState { kGood, kHanging, kFailed };
  struct DiskReport {
    std::uint8_t disk = 0;
    DiskState state = DiskState::kGood;
    Error error;  // of a failed one
  };

  // `executor` outlives the writer. `next_ordinal` comes from recovery.
  LogWriter(Executor& executor, std::uint64_t next_ordinal, Options options);
  ~LogWriter();  // nothing may be in flight
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Takes a disk, which outlives the writer or its removal, into the array.
  void add(LogDisk& disk);
  // No more records go to the disk; what it holds stays. `done` runs when nothing is on its way to
  // it any more: then the writer has forgotten it. kBusy, at once, for the last good disk.
  void remove(std::uint8_t disk, UniqueFunction<void(Result<void>)> done);

  // What is set aside is for records of at most so many bytes, with a block of header.
  static constexpr std::uint64_t kSetsAsideInPieces = (1u << 20) + kBlockBytes;

  // Appends `record` with its payload (record.payload_blocks whole blocks). The writer fills in
  // payload_offset, ordinal and the back pointer. `done` runs once, never before this call has
  // returned: with its place and ordinal when it is durable; kNoSpace when the log is full;
  // kInvalidArgument when it is longer than a track; kIo when every log disk has failed (twice in a
  // row), or a failure could not be recorded, after which every append fails.
  // `sets_aside`: bytes of the log that before-images may take which it brings about, each of at
  // most kSetsAsideInPieces; when it is durable the caller has them to give_back().
  void append(const Record& record, PayloadSlice payload, Urgency urgency, Appended done,
              std::uint64_t sets_aside = 0);
  // Room that ordinary records leave for before-images, beyond the reserve, in bytes: for what was
  // logged and no image holds yet. Without it the images could not be written when the log is
  // full, nor could the log give anything up that they lack.
  void set_aside(std::uint64_t bytes) { set_aside_bytes_ += bytes; }
  void give_back(std::uint64_t bytes);

  void set_observer(UniqueFunction<void(const BatchReport&)> observer) {
    observer_ = std::move(observer);
  }
  void set_disk_observer(UniqueFunction<void(const DiskReport&)> observer) {
    disk_observer_ = std::move(observer);
  }
  // Asks whether a track of a disk may be written now; called with its number before it is taken.
  // While it answers false, the disk waits for retry(). (The initialiser may be writing there.)
  using TrackGate = UniqueFunction<bool(std::uint8_t disk, std::uint64_t track)>;
  void set_track_gate(TrackGate gate) { track_gate_ = std::move(gate); }
  // Asks, when the log is full, whether tracks are about to be released. While it answers true,
  // records wait for retry(); otherwise they fail with kNoSpace. Before-images and rebases, which a
  // release may need and which have no place in a volume's order, overtake what waits, and fail
  // rather than wait.
  void set_full_gate(UniqueFunction<bool()> gate) { full_gate_ = std::move(gate); }
  void retry();

  // Leaves the rest of the present tracks unused: the next batch of each disk begins another one.
  void leave_tracks();

  [[nodiscard]] bool idle() const;
  // Of the disks that are written to.
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::uint64_t limit_bytes() const;
  // What they would use if nothing was packed.
  [[nodiscard]] std::uint64_t history_bytes() const;
  [[nodiscard]] std::uint64_t free_tracks() const;
  [[nodiscard]] const Payloads& payloads() const { return payloads_; }
  [[nodiscard]] std::uint64_t set_aside_bytes() const { return set_aside_bytes_; }
  // What ordinary records leave: the reserve, or what is set aside, and what those that are on
  // their way and the one in front would set aside (at most half of the log); and what giving up a
  // pack may take. It may be more than there is.
  [[nodiscard]] std::uint64_t kept_tracks() const { return kept_beside(set_aside_bytes_); }
  // ... when the images hold all that there is.
  // (What waits for a track sets something aside already, and holds on to it until it has one.)
  [[nodiscard]] std::uint64_t kept_tracks_at_rest() const { return kept_beside(in_hand_bytes_); }
  // What is in front waits for a track, and may not take one.
  [[nodiscard]] bool waits_for_room() const {
    return !waiting_.empty() && free_tracks() <= tracks_kept_from(waiting_.front().urgency);
  }
  // Ordinary records wait or fail for want of room, or nearly so.
  [[nodiscard]] bool short_of_tracks() const {
    return free_tracks() <= options_.reserve_tracks + 1;
  }
  // The ordinals of records that are not there, wherever they stand.
  [[nodiscard]] const Withdrawn& withdrawn() const { return withdrawn_; }
  // Those that recovery found.
  void set_withdrawn(Withdrawn found) { withdrawn_ = std::move(found); }
  // No record below this ordinal is looked at any more.
  void forget_withdrawn(std::uint64_t end) { withdrawn_.forget_below(end); }
  // Every record with an ordinal below it is durable, or was given up.
  [[nodiscard]] std::uint64_t ordinal_frontier() const { return ordinals_.value(); }
  // How many records a batch had in the last while, about: few where hosts wait for one write
  // before they send the next, and notice what else the disk or this thread does.
  [[nodiscard]] double records_of_a_batch() const { return records_of_a_batch_; }
  [[nodiscard]] bool is_written_one_by_one() const { return records_of_a_batch_ < kFewRecords; }
  // No disk is left that can be written to.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] DiskState state_of(std::uint8_t disk) const;

 private:
  using Time = std::chrono::nanoseconds;
  static constexpr int kFailuresMax = 2;  // in a row, of one disk
  static constexpr double kFewRecords = 4;
  static constexpr double kNewestShare = 1.0 / 64;  // of records_of_a_batch()

  // A disk of the array.
  struct Arm {
    LogDisk* disk = nullptr;
    std::optional<std::size_t> policy;  // its number there; none: it takes no records
    std::deque<PendingRecord> queue;
    std::shared_ptr<LogBatch> in_flight;
    bool positioning = false;  // a read of one sector is in flight
    bool gated = false;        // it waits for the track gate
    bool leaving = false;      // leave_tracks() while a batch was in flight
    int failures_in_a_row = 0;
    DiskState state = DiskState::kGood;
    UniqueFunction<void(Result<void>)> removed;  // it is being removed
  };

  [[nodiscard]] bool rests(Time now);
  void pump_soon();
  void pump();
  bool assign_waiting(Time now);
  void look_for_tracks();
  [[nodiscard]] bool may_take_track(const Arm& arm) const;
  bool take_tracks(Time now);
  bool dispatch_due(Time now);
  void dispatch(Arm& arm, Time now);
  void dispatch_now();
  void submit();
  void write(Arm& arm);
  void completed(Arm& arm, const std::shared_ptr<LogBatch>& batch, Result<void> result);
  void succeeded(Arm& arm, LogBatch& batch, bool abandoned);
  void write_failed(Arm& arm, const Error& error);
  void measure_position(Arm& arm, Time now);
  void watch_idle(Arm& arm);
  void watch();
  [[nodiscard]] bool may_abandon(const Arm& arm) const;
  void abandon(Arm& arm);
  void take_queue(Arm& arm);  // what waits for it waits for any disk again
  void take_out(Arm& arm);
  void readmit(Arm& arm);
  void finish_removals();
  void report(const Arm& arm, Error error = {});
  void wake_at(Time time);

  [[nodiscard]] bool is_full(Time now) const;
  // Whether the front of the queue may not use what is left.
  [[nodiscard]] bool reserved() const;
  // Tracks that records of this urgency leave.
  [[nodiscard]] std::uint64_t tracks_kept_from(Urgency urgency) const;
  [[nodiscard]] std::uint64_t kept_beside(std::uint64_t set_aside_bytes) const;
  bool make_way();
  void fail(PendingRecord& pending, const Error& error);
  void withdraw(PendingRecord& pending, const Error& error);
  void fail_ordinary(const Error& error);
  void fail_all(const Error& error);
  [[nodiscard]] Arm* arm_of(std::size_t policy);
  [[nodiscard]] std::size_t usable() const;
  [[nodiscard]] bool none_is_left() const;

  Executor& executor_;
  const Options options_;
  ActiveDisk policy_;
  OrdinalFrontier ordinals_;
  Withdrawn withdrawn_;
  std::vector<std::unique_ptr<Arm>> arms_;
  WaitingRecords waiting_;
  Payloads payloads_;
  std::uint64_t set_aside_bytes_ = 0;
  std::uint64_t in_hand_bytes_ = 0;  // of these, by records that are not durable yet
  BaseRest rest_;
  double records_of_a_batch_ = 1;
  bool pump_pending_ = false;
  bool failed_ = false;
  Error why_failed_{ErrorCode::kIo, "the log disk has failed; see the daemon's log"};
  bool watching_ = false;
  std::optional<Time> wake_;
  UniqueFunction<void(const BatchReport&)> observer_;
  UniqueFunction<void(const DiskReport&)> disk_observer_;
  TrackGate track_gate_;
  UniqueFunction<bool()> full_gate_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
