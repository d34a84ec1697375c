// The coordinator's side towards the logs: the logger, or, while that is away, the journals of both
// storage nodes.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/sequence_text.h"
#include "replication/coordinator_role.h"

namespace mariner::replication {
namespace {

bool within(const std::vector<SequenceRange>& ranges, SequenceNumber sequence) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const SequenceRange& range) { return range.contains(sequence); });
}

}  // namespace

CoordinatorRole::CoordinatorRole(const Start& start, const Options& options)
    : volume_(start.volume),
      epoch_(start.epoch),
      candidates_(start.beside.value == 0 ? start.storages : std::vector<NodeId>{}),
      beside_(candidates_.empty() ? start.beside : candidates_.front()),
      options_(options),
      away_(start.away),
      return_near_(options.return_near) {
  for (const NodeId node : start.storages) storages_[node];
  if (!away_) {
    logs_[start.logger];
    return;
  }
  for (const NodeId node : start.storages) logs_[node];
  return_.emplace(LogReturn::Start{volume_, epoch_, start.logger, *away_});
}

// ---- conversations

void CoordinatorRole::logger_connected(NodeId node, Actions& out) {
  if (phase_ == Phase::kOver) return;
  if (return_ && node == return_->logger()) {
    LogReturn::Out returned;
    return_->connected(phase_ == Phase::kServing, returned);
    return carry_out(returned, out);
  }
  const auto found = logs_.find(node);
  if (found == logs_.end()) return;
  found->second.link = Link::kOpening;
  found->second.opened.reset();
  out.emplace_back(ToLog{node, OpenLog{volume_, epoch_, away_ ? away_->since : SequenceNumber{}}});
}

void CoordinatorRole::logger_disconnected(NodeId node, VersionTime now, Actions& out) {
  if (phase_ == Phase::kOver) return;
  if (return_ && node == return_->logger()) {
    return_->disconnected();
    // Who had waited for it to have the rest goes on without.
    if (holding_ && !changing_) {
      holding_ = false;
      advance(now, out);
    }
    return;
  }
  const auto found = logs_.find(node);
  if (found == logs_.end()) return;
  found->second.link = Link::kDown;
  found->second.opened.reset();
}

void CoordinatorRole::received(NodeId node, FromLogger message, VersionTime now, Actions& out) {
  if (phase_ == Phase::kOver) return;
  const auto* refused = std::get_if<Refused>(&message);
  if (refused != nullptr && refused->promised > epoch_) return over(refused->promised, out);
  if (return_ && node == return_->logger()) {
    LogReturn::Out returned;
    return_->hear(message, settled_, returned);
    carry_out(returned, out);
    return look_at_return(out);
  }
  const auto found = logs_.find(node);
  if (found == logs_.end() || found->second.link == Link::kDown || changing_) return;
  std::visit([&](const auto& heard) { hear(found->second, node, heard, now, out); }, message);
}

void CoordinatorRole::drop_logger(LogLink& log, NodeId node, ErrorCode code,
                                  const std::string& message, Actions& out) {
  log.link = Link::kDown;
  log.opened.reset();
  out.emplace_back(
      DisconnectLogger{node, Error{code, (away_ ? "the journal of node " : "the logger, node ") +
                                             std::to_string(node.value) + ", " + message}});
}

void CoordinatorRole::hear(LogLink& log, NodeId node, const LogOpened& message, VersionTime now,
                           Actions& out) {
  if (log.link != Link::kOpening || message.epoch != epoch_) {
    return drop_logger(log, node, ErrorCode::kProtocol, "opened what was not to be opened", out);
  }
  // A journal has what the other one has, or is not used.
  if (away_ && !message.holes.empty()) {
    return drop_logger(log, node, ErrorCode::kIo,
                       "could not keep " + sequence_text(message.holes.front().first) +
                           "; it is used again when the node has been restarted",
                       out);
  }
  if (phase_ == Phase::kServing) return log_again(log, node, message, now, out);
  if (phase_ == Phase::kVoiding) {
    if (message.last < log.logged) return begin_again(out);
    align(log, node, message, out);
    return serve_when_aligned(out);
  }
  log.opened = message;
  if (std::ranges::all_of(logs_, [](const auto& each) { return each.second.opened.has_value(); })) {
    begin(out);
  }
}

// ---- the epoch's beginning

// Each journal that took part in an epoch without the logger has something above `since`: the voids
// with which that began, at least, and before anything was stamped. Beside one that has writes of
// that time, one that has nothing was set up anew. What the other one has is all that is left of
// what was acknowledged, and it goes on alone: that is read, and brought to the logger. Nothing is
// written until that is back.
bool CoordinatorRole::leave_out_journal_set_up_anew(Actions& out) {
  if (!away_) return true;
  const auto anew = std::ranges::find_if(
      logs_, [this](const auto& each) { return each.second.opened->last <= away_->since; });
  const bool written = std::ranges::any_of(
      logs_, [this](const auto& each) { return each.second.opened->end > away_->since; });
  if (anew == logs_.end() || !written) return true;
  const NodeId node = anew->first;
  const NodeId other = anew == logs_.begin() ? std::next(anew)->first : logs_.begin()->first;
  const bool own = node == beside_;
  journal_missing_ = Error{
      ErrorCode::kUnavailable,
      "the journal of node " + std::to_string(node.value) +
          " has nothing of what was written without the logger, as if it had been set up anew: " +
          (own ? "node " + std::to_string(other.value) + " has it all, and is to serve the volume"
               : "the other one is read alone, and nothing is written until the logger is back")};
  drop_logger(anew->second, node, ErrorCode::kUnavailable, "was set up anew", out);
  if (own) {
    out.emplace_back(WritesWait{*journal_missing_});
    out.emplace_back(HandOver{other});
    return false;
  }
  logs_.erase(anew);
  return true;
}

// One of them has lost what it had when this epoch began: what that means, all of them say
// together.
void CoordinatorRole::begin_again(Actions& out) {
  phase_ = Phase::kOpening;
  for (auto& [node, log] : logs_) {
    log.logged = {};
    drop_logger(log, node, ErrorCode::kUnavailable,
                "is opened again: what one of them had when this epoch began is gone", out);
  }
}

// What is at or below a logger's end is decided. Above it may be numbers that the coordinator
// before has given to writes that never came here: they are voided before anything is stamped. Of
// two journals, both have what was acknowledged. What one of them has beside that, came to it
// alone: it is taken back.
void CoordinatorRole::begin(Actions& out) {
  if (!leave_out_journal_set_up_anew(out)) return;
  phase_ = Phase::kVoiding;
  log_end_ = {};
  VersionTime floor{};
  SequenceNumber frontier{};
  common_ = SequenceNumber{UINT64_MAX};
  for (const auto& [node, log] : logs_) {
    log_end_ = std::max(log_end_, log.opened->last);
    common_ = std::min(common_, log.opened->end);
    end_ = log.opened->end;
    floor = std::max(floor, log.opened->floor);
    frontier = std::max(frontier, std::min(log.opened->frontier, log.opened->last));
  }
  void_until_ = log_end_;
  if (away_) {
    common_ = std::max(common_, away_->since);
    void_until_ = std::max(void_until_, away_->used);
    const VersionTime logger_takes_back{away_->floor.ns + LogAway::kTakeBackNs};
    taken_back_ = VersionTime{std::max(floor, logger_takes_back).ns + 1};
    floor = taken_back_;
  }
  if (void_until_.value > 0 || epoch_.value > 1) void_until_.value += options_.void_margin;
  settled_ = void_until_;
  writes_.emplace(WriteCoordinator::Start{volume_, epoch_, void_until_, floor, frontier},
                  options_.limits);
  told_frontier_ = writes_->frontier();
  for (auto& [node, log] : logs_) {
    const LogOpened opened = *std::exchange(log.opened, std::nullopt);
    align(log, node, opened, out);
  }
  serve_when_aligned(out);
}

void CoordinatorRole::align(LogLink& log, NodeId node, const LogOpened& message, Actions& out) {
  forget_told(message);
  SequenceNumber next = message.last.next();
  const bool take_back = away_ && message.end > common_;
  if (message.last > void_until_ || (take_back && next > void_until_)) {
    return drop_logger(log, node, ErrorCode::kCorrupt,
                       "ends with " + sequence_text(message.last) + ": expected at most " +
                           sequence_text(void_until_),
                       out);
  }
  log.link = Link::kOpen;
  log.logged = message.last;
  if (!message.holes.empty()) {
    log.logged = SequenceNumber{message.holes.front().first.value - 1};
    for (const SequenceRange& hole : message.holes) {
      out.emplace_back(ToLog{node, VoidMessage{volume_, epoch_, hole.first, hole.last}});
    }
  }
  if (take_back) {
    WriteMessage back;
    back.volume = volume_;
    back.stamp = {epoch_, next, taken_back_};
    back.write.kind = WriteKind::kRollback;
    back.write.target = common_;
    back.settled = common_;
    out.emplace_back(ToLog{node, std::move(back)});
    next = next.next();
  }
  if (next <= void_until_) {
    out.emplace_back(ToLog{node, VoidMessage{volume_, epoch_, next, void_until_}});
  }
}

void CoordinatorRole::serve_when_aligned(Actions& out) {
  const bool aligned = std::ranges::all_of(logs_, [this](const auto& each) {
    return each.second.link == Link::kOpen && each.second.logged >= void_until_;
  });
  if (!aligned || phase_ != Phase::kVoiding) return;
  phase_ = Phase::kServing;
  out.emplace_back(Ready{});
  if (journal_missing_) {
    close(*journal_missing_, out);
    out.emplace_back(WritesWait{*journal_missing_});
  }
  for (const auto& [node, storage] : storages_) {
    if (storage.link == Link::kOpening) open_storage(node, out);
  }
  // It may have been there first.
  if (return_ && return_->waits()) {
    LogReturn::Out returned;
    return_->connected(true, returned);
    carry_out(returned, out);
  }
}

void CoordinatorRole::open_storage(NodeId node, Actions& out) {
  OpenStorage open{volume_, epoch_};
  if (away_) open.away_since = away_->since;
  out.emplace_back(ToStore{node, open});
}

// What it was told of the images it may know no more, if it was restarted. It is told again: there
// may be no write to say so, and for what it cannot give up others lack room.
void CoordinatorRole::forget_told(const LogOpened& message) {
  told_frontier_ = std::min(told_frontier_, message.frontier);
  told_in_an_image_ = message.frontier;
}

// ---- a log that is back in the same epoch

// What it has is logged; the rest is sent again in order.
void CoordinatorRole::log_again(LogLink& log, NodeId node, const LogOpened& message,
                                VersionTime now, Actions& out) {
  if (message.last < settled_ || message.last > writes_->last_stamped()) {
    return drop_logger(log, node, ErrorCode::kCorrupt,
                       "has " + sequence_text(message.last) + " as its last write of epoch " +
                           std::to_string(epoch_.value) + ", but " + sequence_text(settled_) +
                           " was acknowledged and " + sequence_text(writes_->last_stamped()) +
                           " is the last one that it was sent",
                       out);
  }
  forget_told(message);
  // Nothing is sent while this goes on (the link is not open): the order of numbers comes after.
  if (!away_) decide(message, now, out);
  log.logged = std::max(settled_, away_ ? message.last : SequenceNumber{});
  log.link = Link::kOpen;
  // It is back, maybe for less than a tick: what is to be durable without it is more by now.
  logger_lost_since_.reset();
  hardening_.reset();
  for (std::size_t i = 0; i < unsettled_.size(); ++i) {
    const SequenceNumber s{settled_.value + 1 + i};
    if (!unsettled_[i].write) {
      // (One that is void there already waits for a lower one.)
      if (s <= message.last && !within(message.holes, s)) continue;
      out.emplace_back(ToLog{node, VoidMessage{volume_, epoch_, s, s}});
    } else if (s > message.last) {
      out.emplace_back(ToLog{node, *unsettled_[i].write});
    }
  }
  for (const Moment& moment : moments_) {
    if (!moment.raised) out.emplace_back(ToLog{node, RaiseFloor{volume_, epoch_, moment.time}});
  }
  if (away_) advance(now, out);
}

// A logger's word on what it was sent before. Of what it has above a number that failed nobody
// hears until that is void there, on record: a start of the logger would take it back, and a read
// that follows the answer would not see it.
void CoordinatorRole::decide(const LogOpened& message, VersionTime now, Actions& out) {
  const SequenceNumber last = message.last;
  bool in_order = true;
  for (SequenceNumber s = settled_.next(); s <= last; s = s.next()) {
    Unsettled* one = unsettled(s);
    if (one == nullptr) continue;
    if (!within(message.holes, s)) {
      if (in_order) settle_one(s, now, out);
      continue;
    }
    in_order = false;
    if (one->write) {
      fail(s, Error{ErrorCode::kIo, "the logger could not log write " + sequence_text(s)}, now,
           out);
    }
  }
}

// ---- their word

void CoordinatorRole::hear(LogLink& log, NodeId node, const Logged& message, VersionTime now,
                           Actions& out) {
  if (log.link != Link::kOpen || message.epoch != epoch_ ||
      message.through > writes_->last_stamped()) {
    return drop_logger(log, node, ErrorCode::kProtocol,
                       "acknowledges " + sequence_text(message.through) + ", which it was not sent",
                       out);
  }
  log.logged = std::max(log.logged, message.through);
  if (phase_ == Phase::kVoiding) return serve_when_aligned(out);
  advance(now, out);
}

// What all of them have is settled.
void CoordinatorRole::advance(VersionTime now, Actions& out) {
  if (holding_) return;
  SequenceNumber through{UINT64_MAX};
  for (const auto& [node, log] : logs_) through = std::min(through, log.logged);
  const SequenceNumber at_first = settled_;
  while (settled_ < through) {
    const SequenceNumber before = settled_;
    settle_one(settled_.next(), now, out);
    CHECK(settled_ > before);
  }
  if (!return_ || settled_ == at_first) return;
  LogReturn::Out returned;
  return_->go_on(settled_, returned);
  carry_out(returned, out);
}

// All logs have it, or its void.
void CoordinatorRole::settle_one(SequenceNumber sequence, VersionTime now, Actions& out) {
  Unsettled* one = unsettled(sequence);
  CHECK(one != nullptr && !one->logged);
  one->logged = true;
  replication::Actions actions;
  if (one->write) {
    end_ = end_after(*one->write);
    writes_->logged(sequence, {}, now, actions);
  } else {
    writes_->void_logged(sequence, sequence, {}, now, actions);
  }
  carry_out(actions, out);
}

void CoordinatorRole::hear(LogLink& log, NodeId node, const LogFailed& message, VersionTime now,
                           Actions& out) {
  Unsettled* one = writes_ ? unsettled(message.sequence) : nullptr;
  if (log.link != Link::kOpen || message.epoch != epoch_ || one == nullptr || !one->write ||
      one->logged) {
    return drop_logger(log, node, ErrorCode::kProtocol,
                       "failed " + sequence_text(message.sequence) + ", which it was not to log",
                       out);
  }
  // The other one may have it: nobody can say that it failed.
  if (away_) {
    return drop_logger(
        log, node, message.error.code,
        "could not keep " + sequence_text(message.sequence) + ": " + message.error.message, out);
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

void CoordinatorRole::hear(LogLink& /*log*/, NodeId /*node*/, const RoomWanted& /*message*/,
                           VersionTime /*now*/, Actions& /*out*/) {
  room_wanted_ = !away_;  // (a journal waits for the logger, not for an image)
}

void CoordinatorRole::hear(LogLink& /*log*/, NodeId /*node*/, const FloorRaised& message,
                           VersionTime /*now*/, Actions& out) {
  if (!writes_) return;
  for (Moment& moment : moments_) moment.raised |= moment.time <= message.time;
  replication::Actions actions;
  while (!moments_.empty() && moments_.front().raised) {
    writes_->settle(moments_.front().token, false, actions);
    moments_.pop_front();
  }
  carry_out(actions, out);
}

void CoordinatorRole::hear(LogLink& log, NodeId node, const Refused& message, VersionTime /*now*/,
                           Actions& out) {
  drop_logger(log, node, message.error.code, "refused: " + message.error.message, out);
}

void CoordinatorRole::over(Epoch by, Actions& out) {
  phase_ = Phase::kOver;
  out.emplace_back(Superseded{by});
}

}  // namespace mariner::replication
