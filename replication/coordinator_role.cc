#include "replication/coordinator_role.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/sequence_text.h"

namespace mariner::replication {
namespace {}  // namespace

// ---- storage nodes

void CoordinatorRole::storage_connected(NodeId node, Actions& out) {
  const auto found = storages_.find(node);
  if (phase_ == Phase::kOver || found == storages_.end()) return;
  found->second.link = Link::kOpening;
  found->second.caught_up = false;
  found->second.held = false;
  found->second.told_lost = false;
  if (phase_ == Phase::kServing) open_storage(node, out);
}

void CoordinatorRole::storage_disconnected(NodeId node, VersionTime now, Actions& out) {
  const auto found = storages_.find(node);
  if (phase_ == Phase::kOver || found == storages_.end()) return;
  found->second.link = Link::kDown;
  found->second.caught_up = false;
  found->second.held = false;
  hardening_.reset();
  choose_beside(now, out);
  update_grant(now, out);
}

void CoordinatorRole::drop_storage(StorageLink& storage, NodeId node, Error why, VersionTime now,
                                   Actions& out) {
  storage.link = Link::kDown;
  storage.caught_up = false;
  storage.held = false;
  hardening_.reset();
  out.emplace_back(Disconnect{node, std::move(why)});
  choose_beside(now, out);
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
  if (outlasts_log(storage, node, message, out)) return;
  storage.opened = true;
  storage.failed = message.failed;
  // Both storage nodes had that much before the logger was gone without: this one's was set up
  // anew.
  storage.lacks_since = away_ && message.committed < away_->since;
  if (storage.lacks_since && message.epoch == epoch_) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kUnavailable,
              "its image lacks what only the logger can tell, which is away: it has " +
                  sequence_text(message.committed) + ", expected " + sequence_text(away_->since)},
        now, out);
  }
  // What was heard last of it counts: it may have written since what it believed to be there. (A
  // log that is away gives nothing up.)
  const SequenceNumber has =
      storage.absent ? std::min(storage.durable, message.durable) : message.durable;
  const bool lacks = !away_ && message.durable.value > 0 && has < writes_->frontier();
  if (message.durable.value == 0) storage.durable = {};  // it has started over
  if (storage.link != Link::kOpening || message.epoch != epoch_ || message.durable > settled_ ||
      !durable(storage, has)) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kProtocol, "a storage node opened what it was not asked to, or has " +
                                        sequence_text(message.durable) + " in its image, above " +
                                        sequence_text(settled_) + ", which is settled"},
        now, out);
  }
  storage.laps = 0;
  storage.catch_up = {};
  if (hold(storage, node, lacks)) return;
  if (lacks && !rebuildable(node)) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kUnavailable,
              "the log has given up what this image lacks, and no other image is there to build it "
              "from: it is left as it is"},
        now, out);
  }
  if (lacks) {
    out.emplace_back(ToStore{node, Resume{volume_, epoch_, settled_, true}});
    return;
  }
  resume(storage, node, options_.first_grant_bytes, now, out);
}

// What a node has committed was settled, and is in the log. If it is not, what was acknowledged has
// been lost, perhaps more than the images have: nothing may be logged as if it were not so.
bool CoordinatorRole::outlasts_log(const StorageLink& storage, NodeId node,
                                   const StorageOpened& message, Actions& out) {
  const SequenceNumber has = std::max(message.committed, message.durable);
  if (storage.opened || has <= log_end_ || message.epoch != epoch_) return false;
  const Error lost{ErrorCode::kCorrupt,
                   "the log ends with " + sequence_text(log_end_) + ", but storage node " +
                       std::to_string(node.value) + " has " + sequence_text(has) +
                       ": the log has lost what was acknowledged. Nothing is written until it is "
                       "brought back"};
  close(lost, out);
  out.emplace_back(Disconnect{node, lost});
  out.emplace_back(WritesWait{lost});
  storages_.at(node).link = Link::kDown;
  return true;
}

// From here on it gets everything.
void CoordinatorRole::resume(StorageLink& storage, NodeId node, std::uint64_t grant,
                             VersionTime now, Actions& out) {
  storage.link = Link::kOpen;
  storage.absent = false;
  storage.resumed = settled_;
  storage.told = settled_;
  storage.sent_bytes = 0;
  storage.granted_bytes = grant;
  storage.stalled_since.reset();
  out.emplace_back(ToStore{node, Resume{volume_, epoch_, settled_}});
  for (const Unsettled& one : unsettled_) {
    if (one.write && storage.link == Link::kOpen) send(storage, node, *one.write, out);
  }
  update_grant(now, out);
}

std::uint64_t CoordinatorRole::unsettled_bytes() const {
  std::uint64_t bytes = 0;
  for (const Unsettled& one : unsettled_) {
    if (one.write) bytes += lag_bytes(one.write->write);
  }
  return bytes;
}

void CoordinatorRole::hear(StorageLink& storage, NodeId /*node*/, const CaughtUp& message,
                           VersionTime now, Actions& out) {
  storage.caught_up = storage.link == Link::kOpen && message.through >= storage.resumed;
  choose_beside(now, out);
}

void CoordinatorRole::hear(StorageLink& storage, NodeId node, const StorageProgress& message,
                           VersionTime now, Actions& out) {
  if (storage.link == Link::kOpening || !durable(storage, message.durable)) {
    return drop_storage(
        storage, node,
        Error{ErrorCode::kProtocol, "a storage node claims to have " +
                                        sequence_text(message.durable) + " in its image, above " +
                                        sequence_text(settled_) + ", which is settled"},
        now, out);
  }
  storage.catch_up = message.catch_up;
  storage.failed = message.failed;
  if (storage.link == Link::kLeftOut) {
    // (All that is under way is sent to it at once.)
    const std::uint64_t room =
        message.resumed == storage.resumed && message.granted > storage.sent_bytes
            ? message.granted - storage.sent_bytes
            : 0;
    const std::uint64_t first = options_.first_grant_bytes;
    if (room >= first + unsettled_bytes() || storage.durable >= storage.told) {
      resume(storage, node, std::max(room, first), now, out);
    }
    return;
  }
  if (message.resumed != storage.resumed) return;  // of before
  storage.granted_bytes = message.granted;
  if (storage.durable >= storage.resumed) storage.laps = 0;
  if (storage.sent_bytes < storage.granted_bytes) storage.stalled_since.reset();
  choose_beside(now, out);
  update_grant(now, out);
}

void CoordinatorRole::hear(StorageLink& storage, NodeId node, const Refused& message,
                           VersionTime now, Actions& out) {
  if (message.promised > epoch_) return over(message.promised, out);
  drop_storage(storage, node, message.error, now, out);
}

// Another node has what its image would be built anew from.
bool CoordinatorRole::rebuildable(NodeId node) const {
  return std::ranges::any_of(storages_, [&](const auto& each) {
    return each.first != node && works(each.second) && each.second.durable >= writes_->frontier();
  });
}

bool CoordinatorRole::durable(StorageLink& storage, SequenceNumber durable) {
  if (durable > settled_) return false;
  storage.durable = std::max(storage.durable, durable);
  move_frontier();
  return true;
}

void CoordinatorRole::move_frontier() {
  SequenceNumber everywhere = settled_;
  for (const auto& [node, storage] : storages_) {
    if (!storage.absent) everywhere = std::min(everywhere, storage.durable);
  }
  writes_->storage_durable(everywhere);
}

SequenceNumber CoordinatorRole::in_an_image() const {
  SequenceNumber somewhere = writes_->frontier();
  for (const auto& [node, storage] : storages_) somewhere = std::max(somewhere, storage.durable);
  return std::min(somewhere, settled_);
}

void CoordinatorRole::watch_absence(NodeId node, StorageLink& storage,
                                    std::chrono::nanoseconds monotonic, Actions& out) {
  const bool away = storage.link == Link::kDown || storage.link == Link::kOpening;
  if (!away || node == beside_) return storage.away_since.reset();
  if (!storage.away_since) storage.away_since = monotonic;
  if (storage.absent) return;
  const std::chrono::nanoseconds is_away = monotonic - *storage.away_since;
  const bool too_long = is_away >= options_.absent_max;
  if (!too_long && !(room_wanted_ && is_away >= options_.absent_for_room)) return;
  // What it lacks another image is to have: one that is there, and works. Of one that was there
  // nobody knows whether it comes back with what it had.
  if (!std::ranges::any_of(storages_, [node](const auto& each) {
        return each.first != node && works(each.second);
      })) {
    return;
  }
  storage.absent = true;
  move_frontier();
  out.emplace_back(GivenUp{node, !too_long});
}

SequenceNumber CoordinatorRole::durable_at(NodeId node) const {
  const auto found = storages_.find(node);
  return found == storages_.end() ? SequenceNumber{} : found->second.durable;
}

CatchUpProgress CoordinatorRole::catch_up_of(NodeId node) const {
  const auto found = storages_.find(node);
  const bool there = found != storages_.end() && found->second.link != Link::kDown;
  return there ? found->second.catch_up : CatchUpProgress{};
}

bool CoordinatorRole::caught_up(NodeId node) const {
  const auto found = storages_.find(node);
  return found != storages_.end() && found->second.caught_up;
}

std::optional<NodeId> CoordinatorRole::reads_from() const {
  if (!caught_up(beside_)) return std::nullopt;
  return beside_;
}

// Who has written what it had missed answers without asking the log, and is gone back to.
void CoordinatorRole::choose_beside(VersionTime now, Actions& out) {
  if (candidates_.empty()) return;
  const auto whole = [this](NodeId node) {
    const StorageLink& storage = storages_.at(node);
    return storage.caught_up && storage.durable >= storage.resumed;
  };
  auto next = std::ranges::find_if(candidates_, whole);
  if (next == candidates_.end() && !caught_up(beside_)) {
    next = std::ranges::find_if(candidates_, [this](NodeId node) { return caught_up(node); });
  }
  if (next == candidates_.end() || *next == beside_) return;
  beside_ = *next;
  StorageLink& storage = storages_.at(beside_);
  storage.stalled_since.reset();
  tell_settled(storage, beside_, out);
  update_grant(now, out);
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
  CHECK(ready() && !away_);
  writes_->raise_floor(time);
  moments_.push_back({token, time, false});
  send_logs(RaiseFloor{volume_, epoch_, time}, out);
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
      if (logs_.begin()->second.link == Link::kOpen) told_frontier_ = message.frontier;
      send_logs(message, out);
      for (auto& [node, storage] : storages_) {
        if (storage.link == Link::kOpen) send(storage, node, message, out);
      }
    } else if (auto* lost = std::get_if<SendVoid>(&action)) {
      send_logs(lost->message, out);
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
  if (!away_) {
    for (auto& [node, storage] : storages_) {
      if (!changing_) watch_image(node, storage, now, monotonic, out);
      watch_absence(node, storage, monotonic, out);
    }
  }
  room_wanted_ = false;
  if (!away_ && !changing_ && logs_.begin()->second.link == Link::kOpen &&
      (writes_->frontier() > told_frontier_ || in_an_image() > told_in_an_image_)) {
    told_frontier_ = writes_->frontier();
    told_in_an_image_ = in_an_image();
    send_logs(FrontierMessage{volume_, epoch_, told_frontier_, told_in_an_image_}, out);
  }
  if (return_) {
    watch_return(monotonic, now, out);
  } else if (!changing_) {
    watch_logger(monotonic, out);
  }
  for (auto& [node, storage] : storages_) {
    // What filled it was not settled then: it has nothing to write, and nothing to say.
    if (storage.link == Link::kLeftOut && storage.durable >= storage.told) {
      resume(storage, node, options_.first_grant_bytes, now, out);
      continue;
    }
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
