// Where the writes of a volume go: to its coordinator, wherever logger and storage stand.
#pragma once

#include "proto/error.h"
#include "proto/unique_function.h"
#include "replication/messages.h"
#include "replication/write_coordinator.h"

namespace mariner::replication {

// Owner's thread only.
class Replicator {
 public:
  using WriteDone = UniqueFunction<void(Result<Stamp>)>;
  using SettleDone = UniqueFunction<void(SequenceNumber)>;
  using MomentDone = UniqueFunction<void(Result<SequenceNumber>)>;

  virtual ~Replicator() = default;

  // `done` runs in the order in which the coordinator answers, possibly before submit() has
  // returned (a refusal). kUnavailable: the coordinator is one no more, and what became of the
  // write others decide.
  virtual void submit(WriteRequest request, WriteDone done) = 0;
  // Runs `done` when all that was submitted before is settled, with the settled number; when the
  // coordinator is one no more, with what was settled then.
  virtual void settle(SettleDone done) = 0;
  // Makes `time` a moment that can be opened: later writes get later times, whoever coordinates
  // then. `done` runs when all writes at or before it are settled. kUnavailable as with submit().
  virtual void settle_moment(VersionTime time, MomentDone done) = 0;

  [[nodiscard]] virtual const WriteCoordinator& coordinator() const = 0;
};

}  // namespace mariner::replication
