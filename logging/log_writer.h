// The log writer: makes records durable, in batches, in the order in which they were appended.
//
// One batch is in flight at a time; what is appended meanwhile gathers into the next. A record that
// finds the disk idle leaves at the end of the event-loop turn in which it came, so that a burst
// becomes one batch and a lone writer waits for nobody (dissertation 4.2; design.md section 6).
//
// Invariants: batches are written without gaps within a track, tracks in the order of their
// allocation numbers; a record's completion runs only after its batch is on stable storage, and
// completions run in the order of append().
//
// Owner's thread only. Bounds: what is queued is bounded by the coordinator's admission
// (replication/write_coordinator.h); a batch by Options.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/log_location.h"
#include "logging/track.h"
#include "logging/track_list.h"
#include "proto/executor.h"
#include "proto/payload.h"

namespace mariner::logging {

// Where the log ends: found by recovery, continued by the writer.
struct LogTail {
  std::uint64_t allocation = 0;  // of the track being filled; 0: none yet
  std::uint64_t next_block = 0;  // where the next batch goes; 0: in a new track
  std::uint64_t next_batch = 1;
  std::uint64_t previous_batch_block = 0;
  struct LastRecord {
    std::uint64_t block = 0;
    std::uint16_t slot = 0;
  };
  std::unordered_map<VolumeId, LastRecord> last_records;
};

class LogWriter {
 public:
  struct Options {
    std::uint32_t batch_bytes_max = 2u << 20;
    // The last tracks, which only essential records (before-images, voids, rollbacks) may use.
    std::uint32_t reserve_tracks = 2;
  };
  enum class Urgency { kOrdinary, kEssential };
  using Appended = UniqueFunction<void(Result<LogLocation>)>;

  // What happened to one batch, for metrics.
  struct BatchReport {
    std::uint32_t records = 0;
    std::uint32_t bytes = 0;               // as written, headers included
    std::chrono::nanoseconds duration{0};  // from dispatch to durable
  };

  // `disk`, `executor` and `tracks` outlive the writer. `superblock`, `tracks` and `tail` come from
  // recovery.
  LogWriter(Disk& disk, Executor& executor, const Superblock& superblock, const TrackList& tracks,
            LogTail tail, Options options);
  ~LogWriter();  // nothing may be in flight
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Appends `record` with its payload (record.payload_blocks whole blocks). The writer fills in
  // payload_offset and the back pointer. `done` runs once, never before this call has returned:
  // with the record's place when it is durable; kNoSpace when the log is full; kIo when the
  // log disk fails twice, after which every append fails.
  void append(const Record& record, PayloadSlice payload, Urgency urgency, Appended done);

  void set_observer(UniqueFunction<void(const BatchReport&)> observer) {
    observer_ = std::move(observer);
  }
  // Asks whether a track may be written now; called with its number before the first write to it.
  // While it answers false, the writer waits for retry(). (The initialiser may be writing there.)
  void set_track_gate(UniqueFunction<bool(std::uint64_t)> gate) { track_gate_ = std::move(gate); }
  // Asks, when the log is full, whether tracks are about to be released. While it answers true,
  // records wait for retry(); otherwise they fail with kNoSpace. Before-images, which a release may
  // need and which have no place in a volume's order, overtake what waits.
  void set_full_gate(UniqueFunction<bool()> gate) { full_gate_ = std::move(gate); }
  void retry() { dispatch_soon(); }

  // Leaves the rest of the present track unused: the next batch begins another one.
  void leave_track();

  [[nodiscard]] bool idle() const { return !in_flight_ && queue_.empty(); }
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::uint64_t limit_bytes() const;
  [[nodiscard]] std::uint64_t free_tracks() const;
  // Ordinary records wait or fail for want of room, or nearly so.
  [[nodiscard]] bool short_of_tracks() const {
    return free_tracks() <= options_.reserve_tracks + 1;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  // Tracks from this one on have never been taken.
  [[nodiscard]] std::uint64_t next_fresh_track() const {
    return std::min(tail_.allocation, superblock_.track_count);
  }
  // Of the track that is being filled; allocations below it are complete and may be released, once
  // nothing that they hold is needed. 0: none yet.
  [[nodiscard]] std::uint64_t current_allocation() const { return tail_.allocation; }

 private:
  struct Pending {
    Record record;
    PayloadSlice payload;
    Urgency urgency;
    Appended done;
    LogLocation location;
  };
  struct Batch {
    std::vector<Pending> records;
    BatchHeader header;
    std::uint64_t first_block =
        0;  // of the physical write: the track header's when it is the first
    std::uint64_t allocation = 0;
    std::uint64_t next_block = 0;
    std::chrono::nanoseconds dispatched{0};
    Payload track_header;
    Payload area;
  };

  void dispatch_soon();
  void dispatch();
  std::uint32_t gather(std::uint64_t room_blocks, Batch& batch);
  bool take_track();
  // Moves the before-images to the front of the queue; whether there are any.
  bool before_images_first();
  void fail_ordinary(const Error& error);
  void build(Batch& batch, bool starts_track);
  void write(std::unique_ptr<Batch> batch);
  void take_back(Batch& batch);
  void completed(std::unique_ptr<Batch> batch, Result<void> result);

  [[nodiscard]] std::uint64_t track_of(std::uint64_t allocation) const;

  Disk& disk_;
  Executor& executor_;
  const Superblock superblock_;
  const TrackList& tracks_;
  const Options options_;
  LogTail tail_;
  std::uint64_t track_end_block_ = 0;
  bool track_is_new_ = false;
  std::deque<Pending> queue_;
  bool in_flight_ = false;
  bool dispatch_pending_ = false;
  bool leaving_track_ = false;
  static constexpr int kFailuresMax = 2;
  int failures_in_a_row_ = 0;
  bool failed_ = false;
  UniqueFunction<void(const BatchReport&)> observer_;
  UniqueFunction<bool(std::uint64_t)> track_gate_;
  UniqueFunction<bool()> full_gate_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
