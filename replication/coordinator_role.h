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
//   anybody hears that it is settled.
// - when somebody of a newer epoch was there first, nothing is answered any more.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "replication/cluster_messages.h"
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
    // it. When it has written what it has, it goes on, and finds the rest in the history.
    std::chrono::nanoseconds storage_patience = std::chrono::seconds(1);
    // A storage node that still writes what it had missed holds nobody up: when it grants nothing
    // it gets nothing more at once, and when it has written all it was told of, it begins another
    // lap, which is shorter. After so many it cannot keep up by itself, and writes wait for it as
    // for any other.
    std::uint32_t laps_unhindered_max = 8;
  };
  struct Start {
    VolumeId volume;
    Epoch epoch;
    std::vector<NodeId> storages;  // whose images the frontier waits for
    NodeId beside;                 // the one that reads are served from: never left out
  };

  struct ToLog {
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
    Error why;
  };
  // From here on writes are stamped.
  struct Ready {};
  // A participant has promised a newer epoch: this role is over. What was not answered never is.
  struct Superseded {
    Epoch by;
  };
  using Action = std::variant<ToLog, ToStore, Disconnect, DisconnectLogger, Ready, Superseded,
                              Answer, Settled>;
  using Actions = std::vector<Action>;

  CoordinatorRole(const Start& start, const Options& options);

  void logger_connected(Actions& out);
  void logger_disconnected();
  void storage_connected(NodeId node, Actions& out);
  void storage_disconnected(NodeId node, VersionTime now, Actions& out);
  void received(FromLogger message, VersionTime now, Actions& out);
  void received(NodeId node, const FromStorage& message, VersionTime now, Actions& out);

  // As WriteCoordinator's. Only when ready().
  void submit(RequestToken token, WriteRequest request, VersionTime now, Actions& out);
  void settle(RequestToken token, Actions& out);
  // Makes `time` a moment that can be opened: Settled when no coordinator, now or later, can stamp
  // at or before it, and everything that was is settled.
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
  // The node has everything that is settled, or knows where it is.
  [[nodiscard]] bool caught_up(NodeId node) const;
  // How far its image is durable, as it has said; 0 for no storage node of the volume.
  [[nodiscard]] SequenceNumber durable_at(NodeId node) const;
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
    bool caught_up = false;
    SequenceNumber durable;
    SequenceNumber resumed;
    SequenceNumber told;  // what it knows to be settled
    std::uint64_t sent_bytes = 0;
    std::uint64_t granted_bytes = 0;
    std::optional<std::chrono::nanoseconds> stalled_since;
    std::uint32_t laps = 0;  // that it was left out in while it caught up
  };
  struct Moment {
    RequestToken token;
    VersionTime time;
    bool raised = false;
  };

  void hear(const LogOpened& message, VersionTime now, Actions& out);
  void hear(const Logged& message, VersionTime now, Actions& out);
  void hear(const LogFailed& message, VersionTime now, Actions& out);
  void hear(const FloorRaised& message, VersionTime now, Actions& out);
  void hear(const Refused& message, VersionTime now, Actions& out);
  void hear(StorageLink& storage, NodeId node, const StorageOpened& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const CaughtUp& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const StorageProgress& message, VersionTime now,
            Actions& out);
  void hear(StorageLink& storage, NodeId node, const Refused& message, VersionTime now,
            Actions& out);
  void begin(const LogOpened& message);
  void void_before(const LogOpened& message, Actions& out);
  void serve(Actions& out);
  void log_again(const LogOpened& message, VersionTime now, Actions& out);
  void settle_one(SequenceNumber sequence, VersionTime now, Actions& out);
  void fail(SequenceNumber sequence, const Error& error, VersionTime now, Actions& out);
  void drop_logger(ErrorCode code, std::string message, Actions& out);
  void drop_storage(StorageLink& storage, NodeId node, Error why, VersionTime now, Actions& out);
  bool durable(StorageLink& storage, SequenceNumber durable);
  void resume(StorageLink& storage, NodeId node, VersionTime now, Actions& out);
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
  const NodeId beside_;
  const Options options_;
  Phase phase_ = Phase::kOpening;
  Link logger_ = Link::kDown;
  SequenceNumber void_until_;               // the numbers that epochs before may have used
  std::optional<WriteCoordinator> writes_;  // from the first opening of the log on
  std::deque<Unsettled> unsettled_;         // [0] is settled_ + 1
  SequenceNumber settled_;
  std::map<NodeId, StorageLink> storages_;
  std::deque<Moment> moments_;  // in the order of asking
  SequenceNumber told_frontier_;
};

}  // namespace mariner::replication
