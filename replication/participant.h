// The participants of a volume's writes, as the coordinator's transport sees them.
#pragma once

#include <optional>
#include <vector>

#include "proto/error.h"
#include "proto/unique_function.h"
#include "replication/messages.h"

namespace mariner::replication {

// The logger: makes writes durable, in any order, and remembers them.
class LoggerParticipant {
 public:
  virtual ~LoggerParticipant() = default;

  // `done` runs once, after the call has returned: with success when the write is on stable
  // storage and in the indexes.
  virtual void log(const WriteMessage& message, UniqueFunction<void(Result<void>)> done) = 0;
  virtual void log_void(const VoidMessage& message, UniqueFunction<void(Result<void>)> done) = 0;
  // An image holds everything at or below durably.
  virtual void applied(SequenceNumber through) { static_cast<void>(through); }
};

// The logger of a cluster's volume: may have lost all that it had.
class ClusterLoggerParticipant : public LoggerParticipant {
 public:
  // Nothing was ever logged here. Writes come from above `at`, after `time`; what the volume held
  // by then the images hold, and no moment before that can be opened. `done` runs, after the call
  // has returned, when that is on stable storage.
  virtual void begin_anew(SequenceNumber at, VersionTime time,
                          UniqueFunction<void(Result<void>)> done) = 0;
};

// A storage node: buffers writes until they are committed, then applies them in the background.
class StorageParticipant {
 public:
  virtual ~StorageParticipant() = default;

  // Buffers a write. Messages come in the order of their sequence numbers.
  virtual void prepare(const WriteMessage& message) = 0;
  // A prepared write never became durable: forget it.
  virtual void drop(const VoidMessage& message) = 0;
  // Everything prepared at or below `settled` is visible from now on, in order.
  virtual void commit(SequenceNumber settled) = 0;
};

// A storage node of a cluster: may have missed something.
class ClusterStorageParticipant : public StorageParticipant {
 public:
  // Whatever is prepared and not committed is void.
  virtual void forget() = 0;
  // What changed in (from, to] reads as the history says it was at `at`, and everything at or below
  // `at` counts as committed. `done` runs when that holds: it is tried until it does. One at a
  // time; never done when the history does not have that any more. What was missed: `from` is what
  // was committed before, `at` is `to`. A rollback: from its target to what was before it, `at`
  // itself.
  virtual void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                        UniqueFunction<void()> done) = 0;
  // Forgets everything, the image included, as if there had never been anything. A catch_up() that
  // is under way is never done. `done` runs, after the call has returned, when that is so on stable
  // storage: it is tried until it is.
  virtual void start_over(UniqueFunction<void()> done) = 0;
  // Makes everything that is committed durable on this node without the log, which does not answer:
  // in the image, or beside it. `done` runs after the call has returned. kUnavailable: part of it
  // is known by its place in the log alone, or this node cannot keep writes by itself.
  virtual void harden(UniqueFunction<void(Result<void>)> done) = 0;
  // Where to find what was committed above `since`: in this node's journal. Nothing: in the log, as
  // all that came before. The image holds nothing of above `since` while the log is away.
  virtual void log_away(std::optional<SequenceNumber> since) = 0;
  // Whether a coordinator listens that counts on this image; at first none does. Otherwise the log
  // may give up what the image lacks at any time, and answers as if the image had it: nothing that
  // the log is to be asked about may be done then.
  virtual void counted_on(bool listens) { static_cast<void>(listens); }
  // While the log is away: it is lost, and the image need keep nothing for it. What harden() put
  // beside the image goes into it; it is tried until that is done.
  virtual void log_lost() = 0;
};

// What a log holds, for another log that lacks it.
class LogSource {
 public:
  struct Portion {
    std::vector<WriteMessage> writes;  // in order
    // Whatever is at or below, above the one that was asked from, and not among them, is void.
    SequenceNumber through;
  };

  virtual ~LogSource() = default;
  // The writes in (from, to], everything at or below `to` being settled: a portion of them, with at
  // least one number.
  virtual void fetch(SequenceNumber from, SequenceNumber to,
                     UniqueFunction<void(Result<Portion>)> done) = 0;
};

// Where a participant keeps what it has promised.
class PromiseStore {
 public:
  virtual ~PromiseStore() = default;
  // `done` runs, after the call has returned, when it is on stable storage that for `volume` nobody
  // of an epoch below `epoch` is heard any more, and nothing at or before `floor` is stamped by a
  // later coordinator (VersionTime{}: nothing new about that). Neither is ever lowered.
  virtual void promise(VolumeId volume, Epoch epoch, VersionTime floor,
                       UniqueFunction<void(Result<void>)> done) = 0;
};

}  // namespace mariner::replication
