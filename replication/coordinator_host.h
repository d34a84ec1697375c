// Carries a CoordinatorRole's actions out, for one epoch: messages to the participants, answers to
// who submitted.
//
// The daemon and the simulator use it alike; how participants are reached, Transport knows. When
// the role is over, or end() is called, everybody who waits hears kUnavailable, once, and nothing
// follows. Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "proto/executor.h"
#include "replication/action_queue.h"
#include "replication/coordinator_role.h"
#include "replication/replicator.h"
#include "replication/settled_times.h"

namespace mariner::replication {

class CoordinatorHost final : public Replicator {
 public:
  // To the participants. What connects them calls logger_connected() and so on, never from within
  // these.
  class Transport {
   public:
    virtual ~Transport() = default;
    // To the logger, or to a node's journal.
    virtual void send_log(NodeId node, const ToLogger& message) = 0;
    virtual void send_storage(NodeId node, const ToStorage& message) = 0;
    // The conversation is to be ended, and a new one begun.
    virtual void reopen_log(NodeId node, const Error& why) = 0;
    virtual void reopen_storage(NodeId node, const Error& why) = 0;
    // LogSource::fetch(), of this node's journal.
    virtual void fetch(SequenceNumber from, SequenceNumber to,
                       UniqueFunction<void(Result<LogSource::Portion>)> done) = 0;
  };
  struct Events {
    UniqueFunction<void()> ready;            // writes can be submitted from now on
    UniqueFunction<void(Epoch)> superseded;  // somebody of this newer epoch was there first
    // Asked before each answer to a write: whether it may still be given.
    UniqueFunction<bool()> may_answer;
    // The record is to say, with the next epoch, that the logger is away, or (nothing) back.
    UniqueFunction<void(std::optional<LogAway>)> change_logs{};
    // The logger is away, and writes wait for it, because of this. Told again and again.
    UniqueFunction<void(const Error&)> writes_wait{};
    UniqueFunction<void(const CoordinatorRole::GivenUp&)> given_up{};
    UniqueFunction<void(const CoordinatorRole::ImageFailed&)> image_failed{};
    // That node is to coordinate: this one's journal has lost what hosts were told is kept (then it
    // never gets ready), or its image has failed (then if that node can). Told again and again.
    UniqueFunction<void(NodeId)> hand_over{};
  };

  // All outlive it. Events run in turns of their own, or from within received().
  CoordinatorHost(const CoordinatorRole::Start& start, const CoordinatorRole::Options& options,
                  Executor& executor, Transport& transport, Events events);
  ~CoordinatorHost() override;
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  void logger_connected(NodeId node);
  void logger_disconnected(NodeId node);
  void storage_connected(NodeId node);
  void storage_disconnected(NodeId node);
  void received(NodeId node, FromLogger message);
  void received(NodeId node, const FromStorage& message);

  // Replicator: before ready, and behind the end, kUnavailable; moments and rollbacks also while
  // the logger is away.
  void submit(WriteRequest request, WriteDone done) override;
  void settle(SettleDone done) override;
  void settle_moment(VersionTime time, MomentDone done) override;
  // From ready on.
  [[nodiscard]] const WriteCoordinator& coordinator() const override { return role_.writes(); }

  // Nothing is answered any more but with kUnavailable.
  void end();

  [[nodiscard]] bool ready() const { return role_.ready() && !ended_; }
  [[nodiscard]] const CoordinatorRole& role() const { return role_; }
  // How long something has been settled, in this epoch, that the image of `node` does not hold
  // durably (settled_times.h); looked at every 100 ms.
  [[nodiscard]] std::chrono::nanoseconds lag(NodeId node) const;

 private:
  void run(CoordinatorRole::Actions& actions);
  void carry_out(CoordinatorRole::Action& action);
  void flush_later();
  void tick_later();

  Executor& executor_;
  Transport& transport_;
  Events events_;
  CoordinatorRole role_;
  std::map<std::uint64_t, WriteDone> writes_;
  std::map<std::uint64_t, SettleDone> settlers_;
  std::map<std::uint64_t, MomentDone> moments_;
  std::uint64_t last_token_ = 0;
  SettledTimes settled_times_;
  ActionQueue<CoordinatorRole::Action> queue_;
  bool flushing_ = false;
  bool ended_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::replication
