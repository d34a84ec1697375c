// The participants of a volume's writes, as the coordinator's transport sees them.
#pragma once

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

}  // namespace mariner::replication
