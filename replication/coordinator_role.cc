#include "replication/coordinator_role.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::replication {
namespace {

bool within(const std::vector<SequenceRange>& ranges, SequenceNumber sequence) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const SequenceRange& range) { return range.contains(sequence); });
}

std::string number(SequenceNumber sequence) { return "#" + std::to_string(sequence.value); }

}  // namespace

CoordinatorRole::CoordinatorRole(const Start& start, const Options& options)
    : volume_(start.volume), epoch_(start.epoch), beside_(start.beside), options_(options) {
  for (const NodeId node : start.storages) storages_[node];
}

// ---- the logger

void CoordinatorRole::logger_connected(Actions& out) {
  if (phase_ == Phase::kOver) return;
  logger_ = Link::kOpening;
  out.emplace_back(ToLog{OpenLog{volume_, epoch_}});
}

void CoordinatorRole::logger_disconnected() { logger_ = Link::kDown; }

void CoordinatorRole::received(FromLogger message, VersionTime now, Actions& out) {
  if (phase_ == Phase::kOver || logger_ == Link::kDown) return;
  std::visit([&](const auto& heard) { hear(heard, now, out); }, message);
}

void CoordinatorRole::drop_logger(ErrorCode code, std::string message, Actions& out) {
  logger_ = Link::kDown;
  out.emplace_back(DisconnectLogger{Error{code, "the logger " + std::move(message)}});
}

void CoordinatorRole::hear(const LogOpened& message, VersionTime now, Actions& out) {
  if (logger_ != Link::kOpening || message.epoch != epoch_) {
    return drop_logger(ErrorCode::kProtocol, "opened what was not to be opened", out);
  }
  if (phase_ == Phase::kOpening) begin(message);
  if (phase_ == Phase::kVoiding) {
    logger_ = Link::kOpen;
    return void_before(message, out);
  }
  log_again(message, now, out);
}

// What is at or below the log's end is decided. Above it may be numbers that the coordinator before
// has given to writes that never came here: they are voided before anything is stamped.
void CoordinatorRole::begin(const LogOpened& message) {
  phase_ = Phase::kVoiding;
  void_until_ = message.last;
  if (message.last.value > 0 || epoch_.value > 1) void_until_.value += options_.void_margin;
  settled_ = void_until_;
  writes_.emplace(WriteCoordinator::Start{volume_, epoch_, void_until_, message.floor,
                                          std::min(message.frontier, message.last)},
                  options_.limits);
  told_frontier_ = writes_->frontier();
}

void CoordinatorRole::void_before(const LogOpened& message, Actions& out) {
  for (const SequenceRange& hole : message.holes) {
    out.emplace_back(ToLog{VoidMessage{volume_, epoch_, hole.first, hole.last}});
  }
  if (message.last < void_until_) {
    out.emplace_back(ToLog{VoidMessage{volume_, epoch_, message.last.next(), void_until_}});
  } else if (message.holes.empty()) {
    serve(out);
  }
}

void CoordinatorRole::serve(Actions& out) {
  phase_ = Phase::kServing;
  out.emplace_back(Ready{});
  for (auto& [node, storage] : storages_) {
    if (storage.link != Link::kOpening) continue;
    out.emplace_back(ToStore{node, OpenStorage{volume_, epoch_}});
  }
}

// The logger is back in the same epoch. What it has is logged; the rest is sent again in order.
void CoordinatorRole::log_again(const LogOpened& message, VersionTime now, Actions& out) {
  if (message.last < settled_ || message.last > writes_->last_stamped()) {
    return drop_logger(ErrorCode::kCorrupt,
                       "has " + number(message.last) + " as its last write of epoch " +
                           std::to_string(epoch_.value) + ", but " + number(settled_) +
                           " was acknowledged and " + number(writes_->last_stamped()) +
                           " is the last one that it was sent",
                       out);
  }
  // Nothing is sent while this goes on (the link is not open): the order of numbers comes after.
  const SequenceNumber last = message.last;
  for (SequenceNumber s = settled_.next(); s <= last; s = s.next()) {
    Unsettled* one = unsettled(s);
    if (one == nullptr || one->logged) continue;
    const bool lost = within(message.holes, s);
    if (!lost) {
      settle_one(s, now, out);
    } else if (one->write) {
      fail(s, Error{ErrorCode::kIo, "the logger could not log write " + number(s)}, now, out);
    }
  }
  logger_ = Link::kOpen;
  for (std::size_t i = 0; i < unsettled_.size(); ++i) {
    const SequenceNumber s{settled_.value + 1 + i};
    if (!unsettled_[i].write) {
      out.emplace_back(ToLog{VoidMessage{volume_, epoch_, s, s}});
    } else if (s > last) {
      out.emplace_back(ToLog{*unsettled_[i].write});
    }
  }
  for (const Moment& moment : moments_) {
    if (!moment.raised) out.emplace_back(ToLog{RaiseFloor{volume_, epoch_, moment.time}});
  }
}

void CoordinatorRole::hear(const Logged& message, VersionTime now, Actions& out) {
  if (logger_ != Link::kOpen || message.epoch != epoch_ ||
      message.through > writes_->last_stamped()) {
    return drop_logger(ErrorCode::kProtocol,
                       "acknowledges " + number(message.through) + ", which it was not sent", out);
  }
  if (phase_ == Phase::kVoiding) {
    if (message.through >= void_until_) serve(out);
    return;
  }
  while (settled_ < message.through) {
    const SequenceNumber before = settled_;
    settle_one(settled_.next(), now, out);
    CHECK(settled_ > before);
  }
}

// The logger has it, or its void.
void CoordinatorRole::settle_one(SequenceNumber sequence, VersionTime now, Actions& out) {
  Unsettled* one = unsettled(sequence);
  CHECK(one != nullptr && !one->logged);
  one->logged = true;
  replication::Actions actions;
  if (one->write) {
    writes_->logged(sequence, {}, now, actions);
  } else {
    writes_->void_logged(sequence, sequence, {}, now, actions);
  }
  carry_out(actions, out);
}

void CoordinatorRole::hear(const LogFailed& message, VersionTime now, Actions& out) {
  Unsettled* one = writes_ ? unsettled(message.sequence) : nullptr;
  if (logger_ != Link::kOpen || message.epoch != epoch_ || one == nullptr || !one->write ||
      one->logged) {
    return drop_logger(ErrorCode::kProtocol,
                       "failed " + number(message.sequence) + ", which it was not to log", out);
  }
  fail(message.sequence, message.error, now, out);
}

void CoordinatorRole::fail(SequenceNumber sequence, const Error& error, VersionTime now,
                           Actions& out) {
  unsettled(sequence)->write.reset();
  replication::Actions actions;
  writes_->logged(sequence, error, now, actions);
  carry_out(actions, out);
}

void CoordinatorRole::hear(const FloorRaised& message, VersionTime /*now*/, Actions& out) {
  if (!writes_) return;
  for (Moment& moment : moments_) moment.raised |= moment.time <= message.time;
  replication::Actions actions;
  while (!moments_.empty() && moments_.front().raised) {
    writes_->settle(moments_.front().token, false, actions);
    moments_.pop_front();
  }
  carry_out(actions, out);
}

void CoordinatorRole::hear(const Refused& message, VersionTime /*now*/, Actions& out) {
  if (message.promised > epoch_) return over(message.promised, out);
  drop_logger(message.error.code, "refused: " + message.error.message, out);
}

void CoordinatorRole::over(Epoch by, Actions& out) {
  phase_ = Phase::kOver;
  out.emplace_back(Superseded{by});
}

// ---- storage nodes

void CoordinatorRole::storage_connected(NodeId node, Actions& out) {
  const auto found = storages_.find(node);
  if (phase_ == Phase::kOver || found == storages_.end()) return;
  found->second.link = Link::kOpening;
  found->second.caught_up = false;
  if (phase_ == Phase::kServing) out.emplace_back(ToStore{node, OpenStorage{volume_, epoch_}});
}

void CoordinatorRole::storage_disconnected(NodeId node, VersionTime now, Actions& out) {
  const auto found = storages_.find(node);
  if (phase_ == Phase::kOver || found == storages_.end()) return;
  found->second.link = Link::kDown;
  found->second.caught_up = false;
  update_grant(now, out);
}

void CoordinatorRole::drop_storage(StorageLink& storage, NodeId node, Error why, VersionTime now,
                                   Actions& out) {
  storage.link = Link::kDown;
  storage.caught_up = false;
  out.emplace_back(Disconnect{node, std::move(why)});
  update_grant(now, out);
}

void CoordinatorRole::received(NodeId node, const FromStorage& message, VersionTime now,
                               Actions& out) {
  const auto found = storages_.find(node);
  if (phase_ != Phase::kServing || found == storages_.end()) return;
  StorageLink& storage = found->second;
  if (storage.link == Link::kDown) return;
  std::visit([&](const auto& heard) { hear(storage, node, heard, now, out); }, message);
}

void CoordinatorRole::hear(StorageLink& storage, NodeId node, const StorageOpened& message,
                           VersionTime now, Actions& out) {
  if (storage.link != Link::kOpening || message.epoch != epoch_ ||
      !durable(storage, message.durable)) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kProtocol, "a storage node opened what it was not asked to, or has " +
                                        number(message.durable) + " in its image, above " +
                                        number(settled_) + ", which is settled"},
        now, out);
  }
  storage.laps = 0;
  resume(storage, node, now, out);
}

// From here on it gets everything.
void CoordinatorRole::resume(StorageLink& storage, NodeId node, VersionTime now, Actions& out) {
  storage.link = Link::kOpen;
  storage.resumed = settled_;
  storage.told = settled_;
  storage.sent_bytes = 0;
  storage.granted_bytes = options_.first_grant_bytes;
  storage.stalled_since.reset();
  out.emplace_back(ToStore{node, Resume{volume_, epoch_, settled_}});
  for (const Unsettled& one : unsettled_) {
    if (one.write && storage.link == Link::kOpen) send(storage, node, *one.write, out);
  }
  update_grant(now, out);
}

void CoordinatorRole::hear(StorageLink& storage, NodeId /*node*/, const CaughtUp& message,
                           VersionTime /*now*/, Actions& /*out*/) {
  storage.caught_up = storage.link == Link::kOpen && message.through >= storage.resumed;
}

void CoordinatorRole::hear(StorageLink& storage, NodeId node, const StorageProgress& message,
                           VersionTime now, Actions& out) {
  if (storage.link == Link::kOpening || !durable(storage, message.durable)) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kProtocol, "a storage node claims to have " + number(message.durable) +
                                        " in its image, above " + number(settled_) +
                                        ", which is settled"},
        now, out);
  }
  if (storage.link == Link::kLeftOut) {
    if (storage.durable >= storage.told) resume(storage, node, now, out);
    return;
  }
  if (message.resumed != storage.resumed) return;  // of before
  storage.granted_bytes = message.granted;
  if (storage.durable >= storage.resumed) storage.laps = 0;
  if (storage.sent_bytes < storage.granted_bytes) storage.stalled_since.reset();
  update_grant(now, out);
}

void CoordinatorRole::hear(StorageLink& storage, NodeId node, const Refused& message,
                           VersionTime now, Actions& out) {
  if (message.promised > epoch_) return over(message.promised, out);
  drop_storage(storage, node, message.error, now, out);
}

bool CoordinatorRole::durable(StorageLink& storage, SequenceNumber durable) {
  if (durable > settled_) return false;
  storage.durable = std::max(storage.durable, durable);
  SequenceNumber everywhere = settled_;
  for (const auto& [other, link] : storages_) everywhere = std::min(everywhere, link.durable);
  writes_->storage_durable(everywhere);
  return true;
}

SequenceNumber CoordinatorRole::durable_at(NodeId node) const {
  const auto found = storages_.find(node);
  return found == storages_.end() ? SequenceNumber{} : found->second.durable;
}

bool CoordinatorRole::caught_up(NodeId node) const {
  const auto found = storages_.find(node);
  return found != storages_.end() && found->second.caught_up;
}

bool CoordinatorRole::laps(NodeId node, const StorageLink& storage) const {
  return node != beside_ && storage.durable < storage.resumed &&
         storage.laps < options_.laps_unhindered_max;
}

void CoordinatorRole::leave_out(StorageLink& storage) {
  storage.link = Link::kLeftOut;
  storage.caught_up = false;
}

void CoordinatorRole::send(StorageLink& storage, NodeId node, const WriteMessage& message,
                           Actions& out) {
  const std::uint64_t bytes = lag_bytes(message.write);
  if (laps(node, storage) && storage.sent_bytes + bytes > storage.granted_bytes) {
    ++storage.laps;
    return leave_out(storage);
  }
  storage.sent_bytes += bytes;
  storage.told = std::max(storage.told, message.settled);
  out.emplace_back(ToStore{node, message});
}

void CoordinatorRole::update_grant(VersionTime now, Actions& out) {
  if (phase_ != Phase::kServing) return;
  std::uint64_t room = WriteCoordinator::kUnlimited;
  for (const auto& [node, storage] : storages_) {
    if (storage.link != Link::kOpen || laps(node, storage)) continue;
    const bool full = storage.sent_bytes >= storage.granted_bytes;
    room = std::min(room, full ? 0 : storage.granted_bytes - storage.sent_bytes);
  }
  const std::uint64_t stamped = writes_->stamped_bytes();
  replication::Actions actions;
  writes_->grant(
      room < WriteCoordinator::kUnlimited - stamped ? stamped + room : WriteCoordinator::kUnlimited,
      now, actions);
  carry_out(actions, out);
}

// ---- writes

void CoordinatorRole::submit(RequestToken token, WriteRequest request, VersionTime now,
                             Actions& out) {
  CHECK(ready());
  replication::Actions actions;
  writes_->submit(token, std::move(request), now, actions);
  carry_out(actions, out);
}

void CoordinatorRole::settle(RequestToken token, Actions& out) {
  CHECK(ready());
  replication::Actions actions;
  writes_->settle(token, true, actions);
  carry_out(actions, out);
}

void CoordinatorRole::settle_moment(RequestToken token, VersionTime time, Actions& out) {
  CHECK(ready());
  writes_->raise_floor(time);
  moments_.push_back({token, time, false});
  if (logger_ == Link::kOpen) out.emplace_back(ToLog{RaiseFloor{volume_, epoch_, time}});
}

void CoordinatorRole::close(const Error& error, Actions& out) {
  if (phase_ != Phase::kServing) return;
  replication::Actions actions;
  writes_->close(error, actions);
  carry_out(actions, out);
}

void CoordinatorRole::carry_out(replication::Actions& actions, Actions& out) {
  for (replication::Action& action : actions) {
    if (auto* write = std::get_if<SendWrite>(&action)) {
      unsettled_.push_back({std::move(write->message), false});
      const WriteMessage& message = *unsettled_.back().write;
      CHECK(message.stamp.sequence.value == settled_.value + unsettled_.size());
      if (logger_ == Link::kOpen) {
        told_frontier_ = message.frontier;
        out.emplace_back(ToLog{message});
      }
      for (auto& [node, storage] : storages_) {
        if (storage.link == Link::kOpen) send(storage, node, message, out);
      }
    } else if (auto* lost = std::get_if<SendVoid>(&action)) {
      if (logger_ == Link::kOpen) out.emplace_back(ToLog{lost->message});
      for (auto& [node, storage] : storages_) {
        if (storage.link == Link::kOpen) out.emplace_back(ToStore{node, lost->message});
      }
    } else if (auto* commit = std::get_if<Commit>(&action)) {
      while (settled_ < commit->settled) {
        unsettled_.pop_front();
        settled_ = settled_.next();
      }
      // Reads are served there: visible before it is answered.
      if (const auto beside = storages_.find(beside_); beside != storages_.end()) {
        tell_settled(beside->second, beside_, out);
      }
    } else if (auto* answer = std::get_if<Answer>(&action)) {
      out.emplace_back(std::move(*answer));
    } else {
      out.emplace_back(std::get<Settled>(action));
    }
  }
}

CoordinatorRole::Unsettled* CoordinatorRole::unsettled(SequenceNumber sequence) {
  if (sequence <= settled_ || sequence.value > settled_.value + unsettled_.size()) return nullptr;
  return &unsettled_[sequence.value - settled_.value - 1];
}

void CoordinatorRole::flush(Actions& out) {
  if (phase_ != Phase::kServing) return;
  for (auto& [node, storage] : storages_) tell_settled(storage, node, out);
}

void CoordinatorRole::tell_settled(StorageLink& storage, NodeId node, Actions& out) {
  if (storage.link != Link::kOpen || storage.told >= settled_) return;
  storage.told = settled_;
  out.emplace_back(ToStore{node, CommitMessage{volume_, epoch_, settled_}});
}

void CoordinatorRole::tick(VersionTime now, std::chrono::nanoseconds monotonic, Actions& out) {
  if (phase_ != Phase::kServing) return;
  if (logger_ == Link::kOpen && writes_->frontier() > told_frontier_) {
    told_frontier_ = writes_->frontier();
    out.emplace_back(ToLog{FrontierMessage{volume_, epoch_, told_frontier_}});
  }
  for (auto& [node, storage] : storages_) {
    if (node == beside_ || storage.link != Link::kOpen || laps(node, storage)) continue;
    if (storage.sent_bytes < storage.granted_bytes) continue;
    if (!storage.stalled_since) {
      storage.stalled_since = monotonic;
    } else if (monotonic - *storage.stalled_since > options_.storage_patience) {
      leave_out(storage);
      update_grant(now, out);
    }
  }
}

}  // namespace mariner::replication
