// The logger's part of one volume in a cluster: whom it hears, what it has, what it says.
//
// Sans I/O: inputs are calls, outputs are actions for the caller to carry out in order. Invariants:
// - it acknowledges in the order of numbers: `Logged.through` says of every number at or below it
//   that it is durable or void. So after a crash what stands in the log behind a missing number was
//   never acknowledged to anybody (and is withdrawn before a role starts: Start.last).
// - a coordinator is told that the log is open only when nothing of one before is under way.
#pragma once

#include <variant>
#include <vector>

#include "replication/cluster_messages.h"
#include "replication/number_ranges.h"
#include "replication/participant_door.h"
#include "replication/settled_frontier.h"

namespace mariner::replication {

class LoggerRole {
 public:
  // What is on stable storage.
  struct Start {
    VolumeId volume;
    Epoch promised;
    SequenceNumber last;  // every number at or below is durable, void, or in a hole; none above is
                          // durable
    VersionTime last_time;
    VersionTime floor;  // no new coordinator may stamp at or before it
    SequenceNumber frontier;
    std::vector<SequenceRange> holes{};  // never became durable, and are not voided; ascending
    SequenceNumber end{};                // LogOpened::end
  };

  // Put it on stable storage, then call promised(). With the floor that is to hold from then on.
  struct Promise {
    Epoch epoch;
    VersionTime floor;
  };
  // Log it, in the order of these actions, then call appended().
  struct Append {
    WriteMessage message;
  };
  // ... then void_appended().
  struct AppendVoid {
    VoidMessage message;
  };
  // ClusterLoggerParticipant::begin_anew(), then begun_anew().
  struct BeginHistory {
    SequenceNumber at;
    VersionTime time;
  };
  struct Send {
    ConnectionId to;
    FromLogger message;
  };
  using Action = std::variant<Promise, Append, AppendVoid, BeginHistory, Send>;
  using Actions = std::vector<Action>;

  explicit LoggerRole(const Start& start);

  void received(ConnectionId from, ToLogger message, Actions& out);
  void disconnected(ConnectionId connection) { door_.leave(connection); }

  void promised(const Promise& promise, const Result<void>& result, Actions& out);
  void appended(SequenceNumber sequence, const Result<void>& result, Actions& out);
  void void_appended(SequenceRange numbers, const Result<void>& result, Actions& out);
  void begun_anew(const BeginHistory& beginning, const Result<void>& result, Actions& out);

  // The log is to be given up further, and cannot be as long as the frontier stands.
  void want_room(Actions& out);

  // At the end of a turn: says what has become settled.
  void flush(Actions& out);

  [[nodiscard]] SequenceNumber settled() const { return settled_.value(); }
  // Everything at or below is durable in every image, as far as coordinators have said.
  [[nodiscard]] SequenceNumber frontier() const { return frontier_; }
  // ... in one image at least.
  [[nodiscard]] SequenceNumber in_an_image() const { return in_an_image_; }
  [[nodiscard]] Epoch epoch() const { return door_.epoch(); }
  // Something that was to be logged never became durable, and is not voided.
  [[nodiscard]] bool failed() const { return !failed_.empty(); }
  [[nodiscard]] bool idle() const { return appending_ == 0 && promising_ == 0; }

 private:
  void hear(ConnectionId from, const OpenLog& message, Actions& out);
  void hear(ConnectionId from, WriteMessage& message, Actions& out);
  void hear(ConnectionId from, const VoidMessage& message, Actions& out);
  void hear(ConnectionId from, const FrontierMessage& message, Actions& out);
  void hear(ConnectionId from, const RaiseFloor& message, Actions& out);
  void hear(ConnectionId from, const BeginAnew& message, Actions& out);
  void refuse(ConnectionId to, ErrorCode code, std::string message, Actions& out);
  void open_when_ready(Actions& out);
  void begun(SequenceRange numbers, const Result<void>& result, Actions& out);
  static SequenceNumber settled_at(const Start& start);

  const VolumeId volume_;
  ParticipantDoor door_;
  SettledFrontier settled_;
  SequenceNumber last_;     // the highest number that was to be logged
  SequenceNumber end_;      // LogOpened::end; too high while a number has failed
  SequenceNumber begin_;    // OpenLog::begin, of who asked last
  bool beginning_ = false;  // the void of what is below that is under way
  VersionTime last_time_;   // of that
  VersionTime floor_;       // no coordinator to come may stamp at or before it
  SequenceNumber frontier_;
  SequenceNumber in_an_image_;
  SequenceNumber told_;        // by Logged, on this connection
  NumberRanges failed_;        // and not voided: bounded by the coordinator's admission
  std::size_t appending_ = 0;  // writes and voids
  std::size_t promising_ = 0;
  bool begins_anew_ = false;  // BeginHistory is under way
};

}  // namespace mariner::replication
