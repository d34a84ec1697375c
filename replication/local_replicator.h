// Carries the coordinator's actions out by function calls: the transport of a standalone server.
//
// Owns the coordinator of one volume. Owner's thread only. Completions of submit() run in the
// order in which the coordinator answers, possibly before submit() has returned (a refusal).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "proto/executor.h"
#include "replication/action_queue.h"
#include "replication/participant.h"
#include "replication/replicator.h"
#include "replication/write_coordinator.h"

namespace mariner::replication {

class LocalReplicator final : public Replicator {
 public:
  // `storage` may be null: a volume without an image (a writable view).
  LocalReplicator(const WriteCoordinator::Start& start, const WriteCoordinator::Limits& limits,
                  Executor& executor, LoggerParticipant& logger, StorageParticipant* storage);
  ~LocalReplicator() override;  // drained() must hold
  LocalReplicator(const LocalReplicator&) = delete;
  LocalReplicator& operator=(const LocalReplicator&) = delete;

  void submit(WriteRequest request, WriteDone done) override;
  void settle(SettleDone done) override;
  void settle_moment(VersionTime time, MomentDone done) override;
  void storage_durable(SequenceNumber sequence) {
    coordinator_.storage_durable(sequence);
    logger_.applied(sequence);
  }
  void grant(std::uint64_t bytes);
  // As WriteCoordinator::share_clock().
  void share_clock(std::shared_ptr<VersionClock> clock) {
    coordinator_.share_clock(std::move(clock));
  }
  // Refuses new writes; what is stamped completes.
  void close(const Error& error);

  [[nodiscard]] const WriteCoordinator& coordinator() const override { return coordinator_; }
  [[nodiscard]] bool drained() const { return coordinator_.in_flight() == 0 && voids_ == 0; }

 private:
  struct Slot {
    WriteDone write;
    SettleDone settle;
  };

  RequestToken put(Slot slot);
  Slot take(RequestToken token);
  void run(Actions& actions);
  void carry_out(Action& action);

  WriteCoordinator coordinator_;
  Executor& executor_;
  LoggerParticipant& logger_;
  StorageParticipant* storage_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> free_slots_;
  std::size_t voids_ = 0;
  ActionQueue<Action> queue_;
};

}  // namespace mariner::replication
