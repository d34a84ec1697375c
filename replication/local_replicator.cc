#include "replication/local_replicator.h"

#include <utility>

#include "proto/check.h"

namespace mariner::replication {

LocalReplicator::LocalReplicator(const WriteCoordinator::Start& start,
                                 const WriteCoordinator::Limits& limits, Executor& executor,
                                 LoggerParticipant& logger, StorageParticipant* storage)
    : coordinator_(start, limits), executor_(executor), logger_(logger), storage_(storage) {}

LocalReplicator::~LocalReplicator() {
  CHECK_MSG(drained(), "a replicator is destroyed with writes in flight");
}

RequestToken LocalReplicator::put(Slot slot) {
  if (free_slots_.empty()) {
    slots_.push_back(std::move(slot));
    return {slots_.size() - 1};
  }
  const std::uint64_t index = free_slots_.back();
  free_slots_.pop_back();
  slots_[index] = std::move(slot);
  return {index};
}

LocalReplicator::Slot LocalReplicator::take(RequestToken token) {
  CHECK(token.value < slots_.size());
  free_slots_.push_back(token.value);
  return std::move(slots_[token.value]);
}

void LocalReplicator::submit(WriteRequest request, WriteDone done) {
  Actions actions;
  coordinator_.submit(put({std::move(done), nullptr}), std::move(request), executor_.wall_time(),
                      actions);
  run(actions);
}

void LocalReplicator::settle(SettleDone done) {
  Actions actions;
  coordinator_.settle(put({nullptr, std::move(done)}), true, actions);
  run(actions);
}

void LocalReplicator::settle_moment(VersionTime time, MomentDone done) {
  coordinator_.raise_floor(time);
  Actions actions;
  coordinator_.settle(
      put({nullptr, [done = std::move(done)](SequenceNumber settled) mutable { done(settled); }}),
      false, actions);
  run(actions);
}

void LocalReplicator::grant(std::uint64_t bytes) {
  Actions actions;
  coordinator_.grant(bytes, executor_.wall_time(), actions);
  run(actions);
}

void LocalReplicator::close(const Error& error) {
  Actions actions;
  coordinator_.close(error, actions);
  run(actions);
}

// Participants see messages in the coordinator's order.
void LocalReplicator::run(Actions& actions) {
  queue_.run(actions, [this](Action& action) {
    carry_out(action);
    return true;
  });
}

void LocalReplicator::carry_out(Action& action) {
  if (auto* send = std::get_if<SendWrite>(&action)) {
    if (storage_ != nullptr) storage_->prepare(send->message);
    const SequenceNumber sequence = send->message.stamp.sequence;
    logger_.log(send->message, [this, sequence](Result<void> result) {
      Actions more;
      coordinator_.logged(sequence, result, executor_.wall_time(), more);
      run(more);
    });
  } else if (auto* lost = std::get_if<SendVoid>(&action)) {
    if (storage_ != nullptr) storage_->drop(lost->message);
    const VoidMessage message = lost->message;
    ++voids_;
    logger_.log_void(message, [this, message](Result<void> result) {
      --voids_;
      Actions more;
      coordinator_.void_logged(message.first, message.last, result, executor_.wall_time(), more);
      run(more);
    });
  } else if (auto* commit = std::get_if<Commit>(&action)) {
    if (storage_ != nullptr) storage_->commit(commit->settled);
  } else if (auto* answer = std::get_if<Answer>(&action)) {
    take(answer->token).write(std::move(answer->result));
  } else if (auto* settled = std::get_if<Settled>(&action)) {
    take(settled->token).settle(settled->sequence);
  }
}

}  // namespace mariner::replication
