// What the nodes of a volume say to each other, beside the write itself (messages.h).
//
// Each belongs to one connection between a coordinator and a participant; a connection carries the
// messages of one direction in order, each once, or breaks. Sources: design.md sections 4 and 5;
// replication/PROTOCOL.md has the states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "replication/messages.h"

namespace mariner::replication {

// A node of the cluster: given once, when it is enrolled. 0 is no node.
struct NodeId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const NodeId&, const NodeId&) = default;
};

// Numbers [first, last].
struct SequenceRange {
  SequenceNumber first;
  SequenceNumber last;
  friend constexpr auto operator<=>(const SequenceRange&, const SequenceRange&) = default;
  [[nodiscard]] constexpr bool contains(SequenceNumber sequence) const {
    return sequence >= first && sequence <= last;
  }
};

// The logger is away: the storage nodes keep what is written in journals of their own, which are
// logs as well (PROTOCOL.md section 7).
struct LogAway {
  SequenceNumber since;  // at or below is what the logger has; both images, or what lies beside
                         // them, hold all of it durably
  SequenceNumber used;   // no number above was given by then: the logger may have some up to here
  VersionTime floor;     // nor any time after this one
  SequenceNumber end;    // LogOpened::end of a log that has everything at or below `since`, no more
  // The times that follow are for what the logger takes back, one for each attempt.
  static constexpr std::uint64_t kTakeBackNs = 1'000'000;
  friend constexpr bool operator==(const LogAway&, const LogAway&) = default;
};

// ---- coordinator to logger

// The coordinator of `epoch` is here. The first message of every connection.
struct OpenLog {
  VolumeId volume;
  Epoch epoch;
  // What is at or below is not to be kept here: a log that ends before it goes on behind it.
  SequenceNumber begin{};
};
// Everything at or below is durable in every image that counts; when no write carries it.
struct FrontierMessage {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber frontier;
  SequenceNumber in_an_image;  // one has got so far: not below the frontier
};

// `time` is becoming a moment that can be opened: no coordinator to come may stamp at or before it.
struct RaiseFloor {
  VolumeId volume;
  Epoch epoch;
  VersionTime time;
};

// To a logger that was away and has lost all that it had: its history begins anew behind `at`,
// which both images hold. No later write is at or before `time`.
struct BeginAnew {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber at;
  VersionTime time;
};

// ---- logger to coordinator

// The logger listens to nobody of an older epoch any more, and nothing of one is under way.
struct LogOpened {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber
      last;  // the highest number that it has: at or below it, what is no hole is settled
  std::vector<SequenceRange> holes;  // failed here, and are not voided yet; ascending
  VersionTime floor;                 // no later write is at or before it
  SequenceNumber frontier;           // durable in every image, as far as the log knows
  // The newest number as of which the volume reads as it does as of `last`: of a write, or, when
  // the newest record is a rollback, its target.
  SequenceNumber end{};
};
// LogOpened::end of a log whose newest record this is.
[[nodiscard]] inline SequenceNumber end_after(const WriteMessage& newest) {
  const bool rollback = newest.write.kind == WriteKind::kRollback;
  return rollback ? newest.write.target : newest.stamp.sequence;
}
// Every number at or below is durable or void.
struct Logged {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber through;
};
// That `time` and what is before it are not to be stamped again is on stable storage.
struct FloorRaised {
  VolumeId volume;
  Epoch epoch;
  VersionTime time;
};
// Writes wait for room in the log, which keeps its oldest records because not every image holds
// them.
struct RoomWanted {
  VolumeId volume;
  Epoch epoch;
};
// A write never became durable and never will. It is to be voided.
struct LogFailed {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber sequence;
  Error error;
};

// ---- coordinator to storage

// The coordinator of `epoch` is here. The first message of every connection.
struct OpenStorage {
  VolumeId volume;
  Epoch epoch;
  // What is committed above is in this node's journal. Nothing: all of it is in the logger's log.
  std::optional<SequenceNumber> away_since{};
};
// Once it is open, and again when it was left out for a while. What was prepared and not committed
// before is void: the numbers at or below `settled` are in the history, all others come now.
// `start_over`: the log may have given up what this node's image lacks. It makes its image anew,
// and ends the connection; when it opens again its image holds nothing.
struct Resume {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber settled;
  bool start_over = false;
};
// Everything prepared at or below is settled; when no write carries it.
struct CommitMessage {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber settled;
};

// The logger does not answer. What is settled, all of it, is to be made durable without it.
struct Harden {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber settled;
};

// While the logger is away: its log is lost, and nobody needs what the image holds for the
// history's sake. The image is to hold everything at or below `since`, durably; StorageProgress
// tells that it does.
struct LogLost {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber since;
};

// ---- storage to coordinator

struct StorageOpened {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber committed;  // what it had when it was opened
  SequenceNumber durable;
  // The image has failed (image_health.h): its disk spoils what is to be written there. It ends the
  // connection when it is to be tried again, if no Resume has come by then.
  std::optional<Error> failed{};
};
// It has everything at or below, or knows where in the history it is: it can serve reads.
struct CaughtUp {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber through;
};
// How far a storage node is with fetching what it missed. All 0: it lacks nothing.
struct CatchUpProgress {
  std::uint64_t total_bytes = 0;  // since it began; it may become more meanwhile
  std::uint64_t left_bytes = 0;   // not in the image yet
  std::uint64_t bytes_per_second = 0;
  friend constexpr bool operator==(const CatchUpProgress&, const CatchUpProgress&) = default;
};
struct StorageProgress {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber resumed;     // of the newest Resume that it has heard
  SequenceNumber durable;     // everything at or below is in the image, on stable storage
  std::uint64_t granted = 0;  // writes may be sent while they add up to less, by lag_bytes() since
                              // Resume
  CatchUpProgress catch_up{};
  std::optional<Error> failed{};  // as StorageOpened's; nothing: it has not, or not any more
};

// Everything at or below `settled` is durable on this node, or that could not be done.
struct Hardened {
  VolumeId volume;
  Epoch epoch;
  SequenceNumber settled;
  std::optional<Error> failed;
};

// ---- participants to a coordinator

// What was said is not heard. kStaleEpoch: `promised` is newer than what was said. kProtocol: it
// does not follow what came before; the connection is of no use any more.
struct Refused {
  VolumeId volume;
  Epoch promised;
  Error error;
};

using ToLogger =
    std::variant<OpenLog, WriteMessage, VoidMessage, FrontierMessage, RaiseFloor, BeginAnew>;
using FromLogger = std::variant<LogOpened, Logged, LogFailed, FloorRaised, RoomWanted, Refused>;
using ToStorage =
    std::variant<OpenStorage, Resume, WriteMessage, VoidMessage, CommitMessage, Harden, LogLost>;
using FromStorage = std::variant<StorageOpened, CaughtUp, StorageProgress, Hardened, Refused>;

}  // namespace mariner::replication
