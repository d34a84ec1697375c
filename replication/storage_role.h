// A storage node's part of one volume in a cluster: whom it hears, what it has, what it says.
//
// Sans I/O: inputs are calls, outputs are actions for the caller to carry out in order. There is
// one way back for a node that missed something, whatever the reason (it was down, cut off, too
// slow, or the coordinator changed): it forgets what was prepared and not committed, asks the
// history what changed behind what it has, and goes on with what comes now. Invariants:
// - a write becomes visible (Commit) only when everything below it is, or is on its way as what the
//   history says (CatchUp) and has been put in place.
// - what was committed is never taken back: a coordinator that knows of less is refused.
// - a node that lacks what the history has given up ends the connection, and starts over when its
//   coordinator says so: it says nothing to anybody until its image holds nothing, and then it has
//   nothing.
// - a rollback is not prepared: when it is settled, the history says what it changed.
// - that its image has failed it says, and goes on: what is to become of it, its coordinator
// judges,
//   who knows of the others. When the image is to be tried again it ends a connection over which it
//   was not resumed.
#pragma once

#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "replication/cluster_messages.h"
#include "replication/participant_door.h"

namespace mariner::replication {

class StorageRole {
 public:
  // What is on stable storage.
  struct Start {
    VolumeId volume;
    Epoch promised;
    SequenceNumber durable;  // the image holds everything at or below
    SequenceNumber kept{};   // it does with what was kept beside it; 0: nothing was
  };

  // Put it on stable storage, then call promised().
  struct Promise {
    Epoch epoch;
  };
  // Whatever is prepared and not committed is void.
  struct Forget {};
  // StorageParticipant::prepare(), drop() and commit().
  struct Prepare {
    WriteMessage message;
  };
  struct Drop {
    VoidMessage message;
  };
  struct Commit {
    SequenceNumber settled;
  };
  // ClusterStorageParticipant::catch_up(), then caught_up(at). One at a time.
  struct CatchUp {
    SequenceNumber from;
    SequenceNumber to;
    SequenceNumber at;
  };
  // ClusterStorageParticipant::log_away().
  struct LogIsAway {
    std::optional<SequenceNumber> since;
  };
  // ClusterStorageParticipant::harden(), then hardened(settled).
  struct HardenNow {
    SequenceNumber settled;
  };
  // ClusterStorageParticipant::log_lost().
  struct LogIsLost {};
  // ClusterStorageParticipant::start_over(), then started_over(). A CatchUp before it is not
  // carried on.
  struct StartOver {};
  struct Send {
    ConnectionId to;
    FromStorage message;
  };
  using Action = std::variant<Promise, Forget, Prepare, Drop, Commit, CatchUp, StartOver, LogIsAway,
                              HardenNow, LogIsLost, Send>;
  using Actions = std::vector<Action>;

  explicit StorageRole(const Start& start);

  void received(ConnectionId from, ToStorage message, Actions& out);
  void disconnected(ConnectionId connection) { door_.leave(connection); }

  void promised(Epoch epoch, const Result<void>& result, Actions& out);
  void caught_up(SequenceNumber at, Actions& out);
  void hardened(SequenceNumber settled, const Result<void>& result, Actions& out);
  // The history does not have what a CatchUp asked for any more: caught_up() does not follow.
  void outlived(Actions& out);
  void started_over(Actions& out);
  // Everything at or below is in the image on stable storage. True: that is more than before.
  bool durable(SequenceNumber sequence);
  // What ImageHealth makes of the image: why it has failed; nothing: it is to be counted on.
  void image_failed(const std::optional<Error>& why, Actions& out);
  // Writes may be sent while they add up to less, by lag_bytes() of all that was ever prepared.
  void granted(std::uint64_t bytes);

  void fetched(const CatchUpProgress& progress);

  // At the end of a turn: says how far it is.
  void flush(Actions& out);

  // A read sees everything at or below.
  [[nodiscard]] SequenceNumber committed() const { return committed_; }
  [[nodiscard]] bool catching_up() const { return catching_up_.has_value() || starting_over_; }
  [[nodiscard]] Epoch epoch() const { return door_.epoch(); }
  [[nodiscard]] std::optional<ConnectionId> heard() const { return door_.heard(); }
  // A coordinator is heard that has looked at how far this image is, and counts on it.
  [[nodiscard]] bool counted_on() const { return door_.heard().has_value() && going_; }

 private:
  void hear(ConnectionId from, const OpenStorage& message, Actions& out);
  void hear(ConnectionId from, const Resume& message, Actions& out);
  void hear(ConnectionId from, WriteMessage& message, Actions& out);
  void hear(ConnectionId from, const VoidMessage& message, Actions& out);
  void hear(ConnectionId from, const CommitMessage& message, Actions& out);
  void hear(ConnectionId from, const Harden& message, Actions& out);
  void hear(ConnectionId from, const LogLost& message, Actions& out);
  void refuse(ConnectionId to, ErrorCode code, std::string message, Actions& out);
  void start_over(Actions& out);
  // Of what the logger, which is away, had when it went.
  [[nodiscard]] bool lacks_since() const { return away_since_ && committed_ < *away_since_; }
  void open_when_ready(Actions& out);
  void settle(SequenceNumber settled, Actions& out);
  void commit_or_catch_up(Actions& out);
  void commit(SequenceNumber settled, Actions& out);

  VolumeId volume_;
  ParticipantDoor door_;
  bool going_ = false;                        // who is heard has said Resume
  std::optional<SequenceNumber> away_since_;  // as who asked last says
  SequenceNumber resumed_;  // what the connection sends is above; what is below is in the history
  SequenceNumber committed_;
  SequenceNumber durable_;
  SequenceNumber settled_;                     // as the coordinator says
  SequenceNumber prepared_;                    // the highest number that was prepared
  std::optional<SequenceNumber> catching_up_;  // to there
  struct Rollback {
    SequenceNumber sequence;
    SequenceNumber target;
  };
  std::deque<Rollback> rollbacks_;  // sent and not committed
  bool starting_over_ = false;
  bool told_caught_up_ = false;
  std::uint64_t prepared_bytes_ = 0;          // ever, rollbacks included
  std::uint64_t prepared_bytes_resumed_ = 0;  // when this connection resumed
  std::uint64_t rollback_bytes_ = 0;          // of these, of rollbacks
  std::uint64_t granted_ = 0;
  CatchUpProgress catch_up_;
  std::optional<Error> failed_;  // the image
  bool progress_ = false;        // to be told
};

}  // namespace mariner::replication
