// A storage node's part of one volume: the image and the table of pending writes in front of it.
//
// Prepared writes are invisible. Committed ones go into the active table; when it is old or large
// enough it is frozen and applied to the image while a new one fills. What memory does not hold
// goes to the backlog then, and is fetched in turn with the tables. A current read looks into the
// active table, then the frozen one, then the backlog, then the image. What has been flushed leaves
// the frozen table and the backlog portion by portion, so that memory and lag become free as the
// image is written.
//
// Invariants: durable() never passes a write that is not in the image on stable storage: it moves
// when the frozen table is done as a whole, because that is in the order of addresses, and as the
// backlog permits; nothing leaves either before it, or what is newer, is on stable storage in the
// image, where reads find it from then on; memory for payloads stays within
// Options.pending_memory_max (beyond it a write is remembered by its place in the history alone);
// what waits for the image, and what is on its way here, stays within lag_bytes_max and one write
// more by what granted_bytes() allows (what a restart finds may be larger). What was missed, and
// what a rollback changed, do not count in that: writes go on meanwhile.
//
// What is committed can be made durable without the log (harden()): the image and a file beside it,
// the spill, hold it together then. What the spill has is what is pending at that moment. A part of
// the frozen table that was flushed before has left it, and is durable in the image; one that is
// flushed later is in both. So it does not matter that durable() stands until all of the table is
// applied, and what is only half written in the image lies under the spill.
//
// What a read takes from the image, or from the history, is of a time behind the look into the
// tables. It counts if no table was frozen meanwhile: then what it looked for is where it was, and
// nothing newer has come to the image. Otherwise the read looks again. Owner's thread only.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "proto/executor.h"
#include "replication/cluster_messages.h"
#include "replication/participant.h"
#include "server/volume/backlog.h"
#include "server/volume/current_reader.h"
#include "server/volume/fetch_order.h"
#include "server/volume/headway.h"
#include "server/volume/history_reader.h"
#include "server/volume/image_applier.h"
#include "server/volume/image_base.h"
#include "server/volume/lag_governor.h"
#include "server/volume/read_ahead.h"
#include "server/volume/slow_erase.h"
#include "server/volume/spill.h"
#include "server/volume/split_table.h"
#include "server/volume/throttle.h"

namespace mariner::volume {

class Storage final : public replication::StorageParticipant, public CurrentReader {
 public:
  struct Options {
    std::uint64_t pending_memory_max = 256u << 20;
    std::uint64_t lag_bytes_max = 4ull << 30;
    std::chrono::nanoseconds apply_delay = std::chrono::seconds(2);
    // Between two flushes of the image, at most about this.
    std::uint64_t portion_bytes_max = 32u << 20;
    // So little of a backlog is fetched in the order of addresses, and not in that of the log.
    std::uint64_t unordered_bytes_max = 64u << 20;
    // How often the headway is told, at most.
    std::chrono::nanoseconds headway_every = std::chrono::milliseconds(250);
    // How fast what was missed is fetched, and what a rollback changed; of all storages that share
    // one. They outlive them. Null: as fast as it goes.
    Throttle* catch_up = nullptr;
    Throttle* restore = nullptr;
  };
  // What a rollback changed and the image is to get.
  struct RestoreProgress {
    std::uint64_t total_bytes = 0;
    std::uint64_t left_bytes = 0;
    std::chrono::nanoseconds took{0};    // so far
    std::uint64_t bytes_per_second = 0;  // over that
    [[nodiscard]] double ratio() const {
      return total_bytes == 0
                 ? 1
                 : 1 - static_cast<double>(left_bytes) / static_cast<double>(total_bytes);
    }
  };

  // What the owner wants to hear. All optional but hold.
  struct Events {
    UniqueFunction<void(SequenceNumber)> durable;  // everything at or below is in the image
    UniqueFunction<void(std::uint64_t)> granted;   // granted_bytes() has changed
    // Will be tried again. Of failures because of what is away, the first in a row.
    UniqueFunction<void(const Error&)> apply_failed;
    // Before it, each time: it was the image's own disk that could not be read, written or flushed.
    UniqueFunction<void(const Error&)> image_failed{};
    // catch_up_progress() has changed.
    UniqueFunction<void(const replication::CatchUpProgress&)> fetched;
    // What a rollback changed is all in the image, durably.
    UniqueFunction<void(const RestoreProgress&)> restored;
    // What catch_up() asked for is no longer in the history; it is not asked again.
    UniqueFunction<void()> outlived;
    // From here on the image holds nothing: to be kept on stable storage before it is emptied.
    // None: nobody remembers what it holds.
    UniqueFunction<void(Done kept)> starts_over;
    // To be kept for the next start. One at a time. None: what is to be fetched is fetched anew.
    UniqueFunction<void(Headway::Change change, Done kept)> headway{};
  };

  // What a start finds.
  struct Found {
    SequenceNumber frontier;  // what the image holds already
    SequenceNumber last;
    // What writes and rollbacks in (frontier, last] may have changed, but for what the headway says
    // is there; and when the first one came.
    std::vector<BlockRange> unapplied;
    VersionTime unapplied_since;
    // What the spill holds, if there is one. If that is more than the image does, `last` is
    // `frontier`, and the volume is as it tells.
    std::optional<Spill::Contents> spilled{};
    bool restores = false;  // a rollback is among them
    Headway headway{};      // as it was kept
  };

  // The parts, the executor and the spill outlive it. `spill`: null: it cannot be hardened.
  Storage(ImageApplier::Parts parts, Executor& executor, Options options, Found found,
          Events events, Spill* spill = nullptr);
  ~Storage() override;  // idle() must hold

  void prepare(const replication::WriteMessage& message) override;
  void drop(const replication::VoidMessage& message) override;
  void commit(SequenceNumber settled) override;
  // These are as ClusterStorageParticipant has them.
  void forget();
  // Asked again, every second, until the history answers, does not have it any more, or the storage
  // is stopped.
  void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                UniqueFunction<void()> done);
  void start_over(UniqueFunction<void()> done);
  // One at a time: kUnavailable for another.
  void harden(Done done);
  // What the spill holds goes into the image, although the log cannot be asked whether anybody
  // needs what is there; Events::durable tells when it is. Tried until it is.
  void put_spilled();
  // The owner has it on stable storage that durable() was there: a spill of no more is removed.
  void kept(SequenceNumber durable);

  void read(BlockRange range, ReadDone done) override;
  void prefetch(BlockRange range) override;
  // The past of the volume, with this image for what only the base holds.
  [[nodiscard]] HistoryReader& past() { return history_; }

  // Nothing goes into the image, and nothing is fetched, until it may go on.
  void rest(bool rests);

  // Options.lag_bytes_max from now on. What is granted may fall.
  void bound_lag(std::uint64_t bytes);

  // Begins to apply now what is pending. `done` runs when all that is committed by now is durable
  // in the image.
  void drain(Done done);
  // What is committed goes to the image without delay; not while that fails, and rests until it is
  // tried again.
  void hurry();
  // Makes what reads as zero in `ranges` zero in the image too, durably, where the image had kept
  // its base for the history's sake and the history needs it no longer. `done` is always called.
  void punch(std::vector<BlockRange> ranges, Done done);
  // Stops applying; nothing more is begun. What is pending is found again in the log.
  void stop();
  [[nodiscard]] bool idle() const {
    return !applier_.running() && !punching_ && reads_in_flight_ == 0 && catching_up_ == 0 &&
           history_.in_flight() == 0 && spilling_ == 0 && !emptying_ && !order_.looking() &&
           !keeping_headway_;
  }

  [[nodiscard]] SequenceNumber durable() const { return durable_; }
  // Everything at or below is on this node's stable storage, and a start finds it.
  [[nodiscard]] SequenceNumber hardened() const { return std::max(kept_, spilled_); }
  // Back-pressure: writes may be prepared while they add up to less than this, by
  // replication::lag_bytes() since this storage began. May fall, too.
  [[nodiscard]] std::uint64_t granted_bytes() const { return granted_bytes_; }
  // Somebody writes faster than the image takes it, and is slowed.
  [[nodiscard]] bool pacing() const { return governor_.sustained(); }
  // Bytes committed and not yet in the image.
  [[nodiscard]] std::uint64_t lag_bytes() const {
    return waiting_bytes() + missed_left_bytes() + restoring_left_bytes();
  }
  // The time of the oldest write that is not in the image; nothing: there is none.
  [[nodiscard]] std::optional<VersionTime> oldest_unapplied() const;
  // Of what was missed, as catch_up() found it.
  [[nodiscard]] replication::CatchUpProgress catch_up_progress() const;
  // A rollback is being restored.
  [[nodiscard]] bool restoring() const { return restoring_.has_value(); }
  [[nodiscard]] RestoreProgress restore_progress() const;

 private:
  struct Table {
    std::shared_ptr<SplitTable> runs;
    std::uint64_t bytes = 0;   // committed to it, overwritten ones included
    std::uint64_t behind = 0;  // of them, those that memory did not hold; once frozen, beside them
    SequenceNumber last;       // the newest write in it
    bool restores = false;
    bool missed = false;               // something in it is what catch_up() found
    std::optional<VersionTime> since;  // of the oldest write in it
    // When it was frozen: `bytes`, and what its memory cost to apply; and what that still costs.
    std::uint64_t bytes_frozen = 0;
    std::uint64_t cost_frozen = 0;
    std::uint64_t cost = 0;
  };
  // What does not count as lag: hosts go on writing meanwhile.
  struct Unhurried {
    std::chrono::nanoseconds since;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_before = 0;  // of them, done before this storage began
  };
  // A portion of the backlog that is in the image.
  struct Fetched {
    std::vector<BlockRange> ranges;
    std::size_t next = 0;  // of them: what is before it has left the backlog
    std::chrono::nanoseconds took{0};
    std::uint64_t image_bytes = 0;  // of what has left
    std::uint64_t lag_bytes = 0;
    UniqueFunction<void()> heard{};  // by the applier, when all has left
  };
  static constexpr auto kRetryDelay = std::chrono::seconds(1);
  static constexpr std::size_t kForgetEachTurn = 64;  // runs
  static constexpr std::uint64_t kFetchPortionFirst = 4u << 20;

  struct ReadOperation;
  struct Punch {
    std::vector<BlockRange> ranges;
    Done done;
  };

  void put(const replication::WriteMessage& message);
  void put_history(std::span<const BlockRange> extents, SequenceNumber at);
  void restore(std::span<const BlockRange> extents, SequenceNumber at);
  [[nodiscard]] bool large() const;
  [[nodiscard]] std::uint64_t memory_bytes() const;
  void committed(SequenceNumber settled);
  void apply_later(std::chrono::nanoseconds delay);
  void apply_now();
  void go_on();
  [[nodiscard]] bool wants_table() const;
  bool may_fetch_now();
  void freeze();
  void move_to_backlog();
  void move_later();
  void move_some();
  // There is nothing beside that to be put into the image.
  [[nodiscard]] bool only_moves() const {
    return moving_ && (!frozen_.runs || frozen_.runs->memory()->empty());
  }
  void moved();
  void image_has_table();
  void apply_table();
  void pace_applier();
  void flushed(const ImageApplier::Flushed& portion, UniqueFunction<void()> heard);
  [[nodiscard]] bool fetches_on() const;
  void begin_portion(std::chrono::nanoseconds now);
  [[nodiscard]] std::chrono::nanoseconds portion_took(std::chrono::nanoseconds now) const;
  [[nodiscard]] std::chrono::nanoseconds rest_after(std::chrono::nanoseconds now) const;
  void applied(const Result<void>& result);
  void fetch_next();
  void fetch_portions(std::span<const BlockRange> order);
  void fetched(std::span<const BlockRange> ranges, UniqueFunction<void()> heard);
  void forget_fetched();
  void forget_fetched_later();
  bool forget_some(Fetched& portion);
  void fetching_ended(const Result<void>& result);
  void reach(Lbn through);
  void tell_headway();
  void keep_headway();
  bool ended();
  void tell_durable();
  void tell_failed(const Error& error, bool& told_unavailable);
  void tell_image_failed(const Error& error);
  void apply_again();
  // But for what was missed, and what a rollback changed.
  [[nodiscard]] std::uint64_t waiting_bytes() const {
    return active_.bytes + frozen_.bytes + frozen_.behind + backlog_.bytes();
  }
  [[nodiscard]] bool nothing_pending() const {
    return active_.runs->empty() && !frozen_.runs && backlog_.empty();
  }
  void visit_pending(BlockRange range,
                     const std::function<void(BlockRange, const PendingContent*)>& visitor) const;
  void update_grant();
  void update_grant_later();
  void missed(std::span<const BlockRange> extents, SequenceNumber at);
  [[nodiscard]] std::uint64_t missed_left_bytes() const;
  [[nodiscard]] std::uint64_t restoring_left_bytes() const;
  void resume_restoring();
  void tell_restored();
  void tell_fetched();
  UniqueFunction<bool(std::uint64_t)> throttled();
  void stop_applier();
  void take(Spill::Contents found);
  [[nodiscard]] Result<Spill::Contents> contents() const;
  void remove_spill_if_kept();
  void remove_spill();
  void spilled_put(const Result<void>& result, SequenceNumber through);
  void keep_start_over();
  void empty_image();
  void try_again(UniqueFunction<void()> what);
  void punch_next();
  void punched(Punch& punch, const Result<void>& result);
  void read_blocks(BlockRange range, std::span<std::byte> to,
                   const std::shared_ptr<ReadOperation>& operation);
  void read_image(BlockRange range, std::span<std::byte> to,
                  const std::shared_ptr<ReadOperation>& operation);
  void read_beside_base(BlockRange range, std::span<std::byte> to,
                        const std::shared_ptr<ReadOperation>& operation);
  static PendingContent content_as_of(SequenceNumber at);
  void correct(const History::Located& located, SequenceNumber at, std::span<std::byte> to,
               const std::shared_ptr<ReadOperation>& operation);
  void look_again(BlockRange range, std::span<std::byte> to,
                  const std::shared_ptr<ReadOperation>& operation);
  void read_pending(BlockRange range, const PendingContent& content, std::span<std::byte> to,
                    const std::shared_ptr<ReadOperation>& operation);
  bool read_from_memory(BlockRange range, ReadDone& done);
  void finished(const std::shared_ptr<ReadOperation>& operation, const Result<void>& result);
  void read_ahead(BlockRange range);

  const ImageApplier::Parts parts_;
  ImageBase base_;
  HistoryReader history_;
  Executor& executor_;
  Options options_;
  Events events_;
  Spill* const spill_;
  ImageApplier applier_;
  LagGovernor governor_;
  std::deque<replication::WriteMessage> prepared_;
  Table active_;
  Table frozen_;         // its runs: null when there is none
  bool moving_ = false;  // what it has of the past goes to the backlog, some runs in a turn
  std::vector<UniqueFunction<void()>> heard_when_moved_;
  Backlog backlog_;                 // of older tables
  std::deque<Fetched> fetched_;     // and is still to leave it
  SlowErase leaving_;               // of tables that are, or were, frozen: what the image has
  std::uint64_t frozen_count_ = 0;  // tables that were ever frozen
  SequenceNumber committed_;
  SequenceNumber durable_;
  SequenceNumber applied_;                  // that is in the image, but for the backlog
  SequenceNumber kept_;                     // what the owner is known to have kept of durable_
  SequenceNumber spilled_;                  // what the spill holds with the image; 0: there is none
  std::uint64_t prepared_bytes_ = 0;        // prepared and not yet committed
  std::uint64_t prepared_bytes_total_ = 0;  // ever
  std::uint64_t granted_bytes_ = 0;
  std::chrono::nanoseconds portion_begun_{0};
  std::chrono::nanoseconds rested_{0};  // of it, for a throttle; what is left of that included
  std::chrono::nanoseconds rests_until_{0};
  std::optional<Unhurried> missed_;     // none: nothing is to be fetched
  std::optional<Unhurried> restoring_;  // likewise of what rollbacks changed
  bool grant_timer_set_ = false;
  bool timer_set_ = false;
  bool due_ = false;           // what is pending waits no longer for more
  bool fetches_next_ = false;  // of a table and the backlog, that is next
  PortionSize fetch_portion_;
  FetchOrder order_;
  Headway headway_;  // `left` is the backlog
  std::chrono::nanoseconds headway_again_{0};
  bool keeping_headway_ = false;
  std::uint64_t written_before_fetch_ = 0;  // of prepared_bytes_total_
  ReadAhead read_ahead_;
  std::uint64_t host_operations_ = 0;          // reads and writes, ever
  std::uint64_t operations_before_fetch_ = 0;  // of them
  std::chrono::nanoseconds fetch_again_{0};
  bool fetch_timer_set_ = false;
  bool retrying_ = false;                 // the applier failed, and rests until it is tried again
  bool told_unavailable_ = false;         // ... by apply_failed, and nothing was applied since
  bool told_unfetched_ = false;           // likewise of the backlog
  UniqueFunction<void()> starting_over_;  // none: it is not
  std::uint64_t lives_ = 1;               // that it has begun
  bool emptying_ = false;
  bool stopped_ = false;
  bool rests_ = false;
  bool interrupted_ = false;  // the applier was told to stop for that
  std::size_t reads_in_flight_ = 0;
  std::size_t catching_up_ = 0;
  bool behind_ = false;       // what catch_up() was told has not been put in place
  std::size_t spilling_ = 0;  // jobs that write or remove the spill
  bool hardening_ = false;
  bool putting_ = false;  // what the spill holds into the image
  struct Drain {
    SequenceNumber until;
    Done done;
  };
  std::deque<Drain> drains_;
  std::deque<Punch> punches_;
  bool punching_ = false;
  bool apply_waits_ = false;  // for that
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
