// The coordinator of one volume in a cluster, for one epoch: opens the participants, stamps writes,
// sends them to all, answers by the logger's word, and keeps what is not settled to send it again.
//
// Sans I/O: inputs are calls with the time as an argument, outputs are actions for the caller to
// carry out in order. A role belongs to one epoch, which the cluster's record names this node for;
// a new epoch is a new role. Whether the lease still holds is asked by the caller, not here.
//
// Invariants, beside those of WriteCoordinator, which stamps:
// - nothing is stamped before the log is open for this epoch, and everything that an older epoch
// may
//   have stamped is durable or void, on record: numbers and times are never given twice.
// - the storage node that reads are served from is told to commit a write before anybody is
//   answered: what is asked from within the answer sees it.
// - a write is kept until it is settled, and sent again, in order, whenever the logger or a storage
//   node comes back.
// - the storage that reads are served from has committed a write before it is answered, and before
//   anybody hears that it is settled. On another node it was told so by then, and a read there
//   waits for what was settled when it came.
// - when somebody of a newer epoch was there first, nothing is answered any more.
//
// A node that stores the volume serves reads from itself. One that does not serves them from a
// storage node that has caught up, the first in the record rather than the other one, which takes
// its place at once when it goes; in time everything that is said here of the one that reads are
// served from goes over to it. Until it does, the one before counts: it is not left out, and the
// frontier waits for it.
//
// A storage node whose image has failed (image_health.h) is gone for this volume: it is let go of,
// and left alone until it is to be tried again; the frontier, and its image, fare as those of a
// node that is away. Not while it is needed: while no other image works and has what the log has
// given up. From this node's own image reads are served, so the other node is to coordinate then.
//
// When the logger stays away, everything settled is made durable at both storage nodes, and the
// record is to say so (ChangeLogs): in the epoch that follows, the storage nodes' journals take the
// logger's place, until it has come back and has everything (PROTOCOL.md section 7). From the
// moment that a change is asked for, nothing is settled in this epoch any more.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "replication/cluster_messages.h"
#include "replication/log_return.h"
#include "replication/write_coordinator.h"

namespace mariner::replication {

class CoordinatorRole {
 public:
  struct Options {
    WriteCoordinator::Limits limits;
    // Numbers above the log's end that the coordinator before may have used: at least as many as it
    // may ever have had in flight (limits.writes_in_flight_max), or they are given twice.
    std::uint64_t void_margin = 4096;
    // What a storage node may be sent before it says what it grants.
    std::uint64_t first_grant_bytes = 16u << 20;
    // A storage node that has granted nothing for so long gets nothing more, and nobody waits for
    // it. When it has room for a first grant again, or has written what it has, it goes on, and
    // finds the rest in the history.
    std::chrono::nanoseconds storage_patience = std::chrono::seconds(1);
    // A storage node that still writes what it had missed holds nobody up: when it grants nothing
    // it gets nothing more at once, and begins another lap when it goes on. After so many it cannot
    // keep up by itself, and writes wait for it as for any other.
    std::uint32_t laps_unhindered_max = 8;
    // A logger that does not answer for so long is gone without, if both storage nodes can. 0: it
    // is waited for, as it is by a node that stores nothing.
    std::chrono::nanoseconds logger_patience{0};
    // The returning logger lacks so few numbers that nothing is settled until it has them, too. As
    // long as it does not come so near, twice as many every ten seconds.
    std::uint64_t return_near = 1024;
    // What a storage node lacks that was not there for so long, the log may give up: the frontier
    // does not wait for it. When it is back, and lacks what others' images alone hold by then, it
    // starts over.
    std::chrono::nanoseconds absent_max = std::chrono::hours(1);
    // ... or for so long, when the log needs room.
    std::chrono::nanoseconds absent_for_room = std::chrono::seconds(10);
  };
  struct Start {
    VolumeId volume;
    Epoch epoch;
    std::vector<NodeId> storages;  // whose images the frontier waits for
    // The one that reads are served from: never left out. 0: this node stores nothing, and it is
    // chosen among them, the first rather than another one.
    NodeId beside;
    NodeId logger;
    std::optional<LogAway> away{};  // the logger's place is taken by the storages' journals
  };

  // To a logger, or a journal.
  struct ToLog {
    NodeId node;
    ToLogger message;
  };
  struct ToStore {
    NodeId node;
    ToStorage message;
  };
  // The connection is to be closed; when it is up again, storage_connected() is called.
  struct Disconnect {
    NodeId node;
    Error why;
  };
  struct DisconnectLogger {
    NodeId node;
    Error why;
  };
  // What this node's journal has of these numbers is to be fetched (LogSource), for fetched().
  struct FetchLogged {
    SequenceNumber from;
    SequenceNumber to;
  };
  // The cluster's record is to say with the next epoch that the logger is away, or that it is back.
  // Until then this role goes on, and settles nothing.
  struct ChangeLogs {
    std::optional<LogAway> away;
  };
  // Writes cannot be acknowledged: the logger is away, and nobody can go on without, which is tried
  // again; or its log has lost something, which is not.
  struct WritesWait {
    Error why;
  };
  // A storage node has been away for too long: what its image lacks the log may give up.
  struct GivenUp {
    NodeId node;
    bool for_room = false;  // the log would have been full
  };
  // The image of a storage node has failed. `let_go`: it is done without; otherwise it is needed,
  // and the log gives up nothing that it lacks. Told when either comes to be.
  struct ImageFailed {
    NodeId node;
    Error why;
    bool let_go = false;
  };
  // This node's journal was set up anew, and that node has in its own what was acknowledged; this
  // role never gets ready then. Or, ready: this node's image has failed, and that one's has not. It
  // is to coordinate. Told again and again.
  struct HandOver {
    NodeId to;
  };
  // From here on writes are stamped.
  struct Ready {};
  // A participant has promised a newer epoch: this role is over. What was not answered never is.
  struct Superseded {
    Epoch by;
  };
  using Action =
      std::variant<ToLog, ToStore, Disconnect, DisconnectLogger, FetchLogged, ChangeLogs,
                   WritesWait, GivenUp, ImageFailed, HandOver, Ready, Superseded, Answer, Settled>;
  using Actions = std::vector<Action>;

  CoordinatorRole(const Start& start, const Options& options);

  // Of the logger, or of a journal.
  void logger_connected(NodeId node, Actions& out);
  void logger_disconnected(NodeId node, VersionTime now, Actions& out);
  void storage_connected(NodeId node, Actions& out);
  void storage_disconnected(NodeId node, VersionTime now, Actions& out);
  void received(NodeId node, FromLogger message, VersionTime now, Actions& out);
  void fetched(const Result<LogSource::Portion>& portion, Actions& out);
  void received(NodeId node, const FromStorage& message, VersionTime now, Actions& out);

  // As WriteCoordinator's. Only when ready().
  void submit(RequestToken token, WriteRequest request, VersionTime now, Actions& out);
  void settle(RequestToken token, Actions& out);
  // Makes `time` a moment that can be opened: Settled when no coordinator, now or later, can stamp
  // at or before it, and everything that was is settled. Not while the logger is away.
  void settle_moment(RequestToken token, VersionTime time, Actions& out);
  // Fails what waits and what comes with `error`; what is stamped goes on.
  void close(const Error& error, Actions& out);

  // At the end of a turn: what no write carried.
  void flush(Actions& out);
  // Every 100 ms or so.
  void tick(VersionTime now, std::chrono::nanoseconds monotonic, Actions& out);

  [[nodiscard]] bool ready() const { return phase_ == Phase::kServing; }
  [[nodiscard]] bool superseded() const { return phase_ == Phase::kOver; }
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  [[nodiscard]] const std::optional<LogAway>& away() const { return away_; }
  // The node has everything that is settled, or knows where it is.
  [[nodiscard]] bool caught_up(NodeId node) const;
  // The storage node that reads are served from. Nothing: it has not caught up, and no other has
  // that could take its place.
  [[nodiscard]] std::optional<NodeId> reads_from() const;
  // How far its image is durable, as it has said; 0 for no storage node of the volume.
  [[nodiscard]] SequenceNumber durable_at(NodeId node) const;
  // How far it is with what it missed, as it has said.
  [[nodiscard]] CatchUpProgress catch_up_of(NodeId node) const;
  // Why its image cannot be counted on, as it has said last; nothing: it can, as far as is known.
  [[nodiscard]] std::optional<Error> image_failure(NodeId node) const;
  // Everything at or below is durable or void; 0 before the log was opened.
  [[nodiscard]] SequenceNumber settled() const { return settled_; }
  // From ready() on.
  [[nodiscard]] const WriteCoordinator& writes() const { return *writes_; }

 private:
  enum class Phase : std::uint8_t {
    kOpening,  // the log, for the first time
    kVoiding,  // the numbers of the epoch before
    kServing,
    kOver,
  };
  enum class Link : std::uint8_t { kDown, kOpening, kOpen, kLeftOut };
  // A number that is not settled: a write, or what became of it.
  struct Unsettled {
    std::optional<WriteMessage> write;  // nothing: it failed, and is being voided
    bool logged = false;
  };
  struct StorageLink {
    Link link = Link::kDown;
    bool opened = false;  // in this epoch
    bool caught_up = false;
    SequenceNumber durable;
    SequenceNumber resumed;
    SequenceNumber told;  // what it knows to be settled
    std::uint64_t sent_bytes = 0;
    std::uint64_t granted_bytes = 0;
    CatchUpProgress catch_up;
    std::optional<std::chrono::nanoseconds> stalled_since;
    bool told_lost = false;    // LogLost
    bool lacks_since = false;  // what the logger, which is away, had when it went
    std::uint32_t laps = 0;    // that it was left out in while it caught up
    std::optional<std::chrono::nanoseconds> away_since;  // as ticks have seen it
    bool absent = false;              // for too long: the frontier does not wait for it
    std::optional<Error> failed;      // its image
    bool held = false;                // ... and it is open, and left alone
    std::optional<bool> told_let_go;  // ImageFailed
    std::optional<std::chrono::nanoseconds> handed_over;  // when HandOver was told last
  };
  struct LogLink {
    Link link = Link::kDown;
    std::optional<LogOpened> opened;  // while others have not, in phase kOpening
    SequenceNumber logged;            // everything at or below is durable or void there
  };
  // Both storage nodes are making it durable.
  struct Hardening {
    SequenceNumber settled;
    std::set<NodeId> waits;  // for these
  };
  struct Moment {
    RequestToken token;
    VersionTime time;
    bool raised = false;
  };

  void hear(LogLink& log, NodeId node, const LogOpened& message, VersionTime now, Actions& out);
  void hear(LogLink& log, NodeId node, const Logged& message, VersionTime now, Actions& out);
  void hear(LogLink& log, NodeId node, const LogFailed& message, VersionTime now, Actions& out);
  void hear(LogLink& log, NodeId node, const FloorRaised& message, VersionTime now, Actions& out);
  void hear(LogLink& log, NodeId node, const RoomWanted& message, VersionTime now, Actions& out);
  void hear(LogLink& log, NodeId node, const Refused& message, VersionTime now, Actions& out);
  void hear(StorageLink& storage, NodeId node, const StorageOpened& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const CaughtUp& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const StorageProgress& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const Hardened& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const Refused& message, VersionTime now,
            Actions& out);
  void begin(Actions& out);
  void begin_again(Actions& out);
  bool leave_out_journal_set_up_anew(Actions& out);
  void align(LogLink& log, NodeId node, const LogOpened& message, Actions& out);
  void serve_when_aligned(Actions& out);
  void forget_told(const LogOpened& message);
  void open_storage(NodeId node, Actions& out);
  void log_again(LogLink& log, NodeId node, const LogOpened& message, VersionTime now,
                 Actions& out);
  void decide(const LogOpened& message, VersionTime now, Actions& out);
  void advance(VersionTime now, Actions& out);
  void settle_one(SequenceNumber sequence, VersionTime now, Actions& out);
  void fail(SequenceNumber sequence, const Error& error, VersionTime now, Actions& out);
  void drop_logger(LogLink& log, NodeId node, ErrorCode code, const std::string& message,
                   Actions& out);
  template <typename Message>
  void send_logs(const Message& message, Actions& out) {
    for (const auto& [node, log] : logs_) {
      if (log.link == Link::kOpen) out.emplace_back(ToLog{node, message});
    }
  }
  void carry_out(LogReturn::Out& returned, Actions& out);
  void watch_logger(std::chrono::nanoseconds monotonic, Actions& out);
  void watch_return(std::chrono::nanoseconds monotonic, VersionTime now, Actions& out);
  void look_at_return(Actions& out);
  void begin_anew(Actions& out);
  void change_logs(std::optional<LogAway> away, Actions& out);
  void drop_storage(StorageLink& storage, NodeId node, Error why, VersionTime now, Actions& out);
  bool durable(StorageLink& storage, SequenceNumber durable);
  bool outlasts_log(const StorageLink& storage, NodeId node, const StorageOpened& message,
                    Actions& out);
  void move_frontier();
  // How far the image has got that has got furthest.
  [[nodiscard]] SequenceNumber in_an_image() const;
  void choose_beside(VersionTime now, Actions& out);
  [[nodiscard]] bool rebuildable(NodeId node) const;
  void watch_absence(NodeId node, StorageLink& storage, std::chrono::nanoseconds monotonic,
                     Actions& out);
  [[nodiscard]] static bool works(const StorageLink& storage);
  [[nodiscard]] std::optional<NodeId> in_its_place(NodeId node) const;
  [[nodiscard]] bool is_own(NodeId node) const { return candidates_.empty() && node == beside_; }
  bool hold(StorageLink& storage, NodeId node, bool lacks);
  void watch_image(NodeId node, StorageLink& storage, VersionTime now,
                   std::chrono::nanoseconds monotonic, Actions& out);
  void watch_held(NodeId node, StorageLink& storage, VersionTime now, Actions& out);
  void tell_failed(NodeId node, StorageLink& storage, bool let_go, Actions& out);
  void hand_over(NodeId to, StorageLink& storage, std::chrono::nanoseconds monotonic, Actions& out);
  void resume(StorageLink& storage, NodeId node, std::uint64_t grant, VersionTime now,
              Actions& out);
  [[nodiscard]] std::uint64_t unsettled_bytes() const;
  void carry_out(replication::Actions& actions, Actions& out);
  void tell_settled(StorageLink& storage, NodeId node, Actions& out);
  // It still writes what it had missed, and nobody waits for it.
  [[nodiscard]] bool laps(NodeId node, const StorageLink& storage) const;
  static void leave_out(StorageLink& storage);
  void send(StorageLink& storage, NodeId node, const WriteMessage& message, Actions& out);
  void update_grant(VersionTime now, Actions& out);
  void over(Epoch by, Actions& out);
  Unsettled* unsettled(SequenceNumber sequence);

  const VolumeId volume_;
  const Epoch epoch_;
  const std::vector<NodeId> candidates_;  // for beside_; none: it is given
  NodeId beside_;
  const Options options_;
  const std::optional<LogAway> away_;
  Phase phase_ = Phase::kOpening;
  std::map<NodeId, LogLink> logs_;          // a write is settled when all have it
  std::optional<Error> journal_missing_;    // the other one is alone
  SequenceNumber common_;                   // what the journals have above, only one of them has
  VersionTime taken_back_;                  // the time of taking that back
  SequenceNumber end_;                      // LogOpened::end, of what is settled
  SequenceNumber log_end_;                  // what was logged when this epoch began
  SequenceNumber void_until_;               // the numbers that epochs before may have used
  std::optional<WriteCoordinator> writes_;  // from the first opening of the log on
  std::deque<Unsettled> unsettled_;         // [0] is settled_ + 1
  SequenceNumber settled_;
  std::map<NodeId, StorageLink> storages_;
  std::deque<Moment> moments_;  // in the order of asking
  SequenceNumber told_frontier_;
  SequenceNumber told_in_an_image_;
  std::optional<std::chrono::nanoseconds> logger_lost_since_;
  std::optional<Hardening> hardening_;
  bool harden_failed_ = false;
  std::chrono::nanoseconds harden_after_{0};
  std::optional<LogReturn> return_;  // while the logger is away
  std::uint64_t return_near_;
  std::optional<std::chrono::nanoseconds> return_near_since_;
  bool room_wanted_ = false;  // the log has asked since the last tick
  bool holding_ = false;      // nothing is settled now
  bool changing_ = false;     // nor later: ChangeLogs has been asked for
};

}  // namespace mariner::replication
