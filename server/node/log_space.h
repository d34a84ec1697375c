// Keeps room in the log: gives up the oldest tracks when space runs low, and decides what goes when
// everything that is to be kept does not fit.
//
// As long as there is room nothing is given up: history reaches back further than the windows that
// were asked for. Below the low-water mark what is outside of every window goes, but for what
// views, marks and the volumes' schedules (client/retention.h) show of it: of the past behind the
// window such moments are left. When even that is not enough and writes would fail, `on_full`
// decides: "stop-writes" keeps it all, and so does "throttle", with which it seldom comes to that
// (write_throttle.h) and writes wait longer; "shorten-window" drops the moments that tokens of
// copies stand for, views, then unlocked marks, then what schedules keep, the oldest first, and
// then shortens the window, no more than it must, and a sixteenth of the log: a log that writes
// have once waited for goes on until it has so much room. Locked marks stay, and views that are to
// be kept; and so do views and marks of moments inside of what is left of the window: these hold
// nothing that it does not hold, and one of them is what a rollback is undone by.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/node/believed_time.h"
#include "server/node/config.h"
#include "server/node/history_keeper.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/meta_store.h"
#include "server/node/window_shortening.h"
#include "server/volume/reclaimer.h"

namespace mariner::node {

class LogSpace final : private volume::ReclaimerOwner {
 public:
  struct Parts {  // all outlive it
    LogStack& log_stack;
    HistoryKeeper& keeper;
    MetaStore& store;
    volume::Worker& worker;
    Executor& executor;
    Log& log;
  };
  using Done = volume::ReclaimerOwner::Done;

  LogSpace(Parts parts, OnFull on_full);
  ~LogSpace() override;  // idle() must hold
  LogSpace(const LogSpace&) = delete;
  LogSpace& operator=(const LogSpace&) = delete;

  // For what does not fit from now on. Writes wait once more before they fail.
  void set_on_full(OnFull on_full);

  // Told when a write waits and the window gives way; may be told for each.
  void set_pressed(UniqueFunction<void()> pressed) { told_pressed_ = std::move(pressed); }
  // Since a write has waited, and until a sixteenth of the log is free beside what is reserved, the
  // window gives way track by track (kShortenWindow; not where history is compacted).
  [[nodiscard]] bool pressed() const { return pressed_; }
  // How many tracks are to be free beside those that hosts' writes leave, as long as that costs
  // nothing that is to be kept.
  [[nodiscard]] static std::uint64_t tracks_wanted(const LogStack& log);

  // Looks at the room; now and then.
  void check();
  void stop();
  [[nodiscard]] bool idle() const { return reclaimer_.idle() && !running_; }

  // Whether a mark of the volume is locked.
  [[nodiscard]] bool locked(VolumeId volume) const;
  // Gives up everything that the volume held before its newest settled write, which the image
  // holds durably: no moment before it can be opened any more, durably when `done` runs. kBusy when
  // a view, a locked mark or a rollback needs an older one, or there was a rollback after
  // `last_rollback`, which may have brought it back. Snapshots are dropped.
  void forget_past(VolumeId volume, SequenceNumber last_rollback, Done done);
  // Gives up the moments behind the window that nothing keeps any longer, durably when `done` runs.
  void prune(VolumeId volume, Done done);

  [[nodiscard]] std::uint64_t tracks_freed() const { return tracks_freed_; }

  // How it stands, whatever is used: of a log that has gone round nearly all is, all the time.
  enum class Room : std::uint8_t {
    kEnough,  // what is oldest may go when its place is needed
    kShort,   // little is left, and what is oldest is to be kept
    kFull,    // writes are refused
  };
  [[nodiscard]] Room room() const;

 private:
  // volume::ReclaimerOwner
  std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override;
  VersionTime keep_from(VolumeId volume) override;
  Wish to_keep(VolumeId volume) override;
  void store(std::vector<volume::VolumeRelease> releases, std::optional<std::uint64_t> ordinal,
             Done done) override;

  // What is done between two tries, because a try has found out already how far it gives each
  // volume up.
  struct Errand {
    UniqueFunction<void(Done)> run;
    Done done;
  };
  void run_next();
  void begin_forgetting(VolumeId id, SequenceNumber last_rollback, Done done);
  void prune_now(VolumeId id, Done done);
  void forget(VolumeId id, const std::shared_ptr<volume::Reclaimable>& volume,
              index::IndexMoment at, SequenceNumber last_rollback, Done done);
  void begin();
  void ended_try(const Result<volume::Reclaimer::Report>& report);
  void ended(const Result<volume::Reclaimer::Report>& report);
  void again(std::chrono::nanoseconds delay);
  void end_patience();
  // The log is full but for its reserve, and `volume` needs what is oldest: gives something of it
  // up.
  bool give_up(VolumeId volume);
  bool be_patient();
  void press();
  [[nodiscard]] bool is_journal(VolumeId volume);
  bool drop_snapshots(VolumeId volume);
  // The oldest that may go and holds something that is older than `before`.
  bool drop_view(VolumeId volume, VersionTime before);
  bool drop_mark(VolumeId volume, VersionTime before);
  bool thin_out(VolumeId volume);
  bool shorten_window(VolumeId volume);
  [[nodiscard]] const std::vector<index::IndexMoment>& clean_moments(VolumeId volume);
  [[nodiscard]] bool is_greedy(VolumeId volume) const;
  // From where on every moment is kept, whatever else is.
  [[nodiscard]] VersionTime window_begin(VolumeId volume);
  [[nodiscard]] VersionTime now();
  [[nodiscard]] bool low() const;
  // Whether what is outside of every window should go now: for room, or to empty a disk.
  [[nodiscard]] bool wanted() const;
  [[nodiscard]] bool critical() const;
  [[nodiscard]] bool tight() const;
  [[nodiscard]] bool urgent() const;
  [[nodiscard]] std::size_t tracks_at_once() const;
  void warn();
  [[nodiscard]] bool gains(const volume::Reclaimer::Report& report);

  const Parts parts_;
  OnFull on_full_;
  UniqueFunction<void()> told_pressed_;
  bool pressed_ = false;
  BelievedTime time_;
  volume::Reclaimer reclaimer_;
  // Whose windows count for less in the next try. The oldest track may hold history of several
  // volumes: none that was shortened grows back before the track is freed.
  WindowShortening shortened_;
  std::map<VolumeId, std::chrono::nanoseconds> said_shortened_;  // when, last
  // How many of the oldest moments that a schedule keeps are not kept in the next try.
  std::map<VolumeId, std::size_t> thinned_;
  struct CleanMoments {
    std::vector<index::IndexMoment> moments;
    std::optional<std::chrono::nanoseconds> read;
  };
  std::map<VolumeId, CleanMoments> clean_;
  bool began_critical_ = false;                           // when the last try began
  std::optional<std::chrono::nanoseconds> needed_since_;  // while writes wait
  std::chrono::nanoseconds needed_last_{0};
  std::chrono::nanoseconds not_before_{0};  // the next try, unless writes wait
  // Tracks that were freed since that has gained anything.
  std::size_t gained_nothing_ = 0;
  bool needed_ = false;  // what is oldest is to be kept, as the last try found
  bool stuck_ = false;   // ... and nothing may be given up
  bool stopping_ = false;
  std::deque<Errand> errands_;  // bounded by what administrators and initiators ask for
  bool running_ = false;        // the first of them; no track is tried meanwhile
  bool waiting_ = false;        // for the next try
  bool patient_ = false;        // ... as long as nobody waits for room
  std::uint64_t waits_ = 0;     // so many times, ever
  std::uint64_t tracks_freed_ = 0;
  unsigned warned_percent_ = 0;  // the highest threshold that was logged
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
