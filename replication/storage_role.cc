#include "replication/storage_role.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::replication {

namespace {

constexpr const char* kOutlived = "the log has given up what this node's image lacks";
constexpr const char* kStartingOver =
    "the log has given up what this node's image lacks: it is made anew";
constexpr const char* kTriedAgain = "this node's image had failed, and is tried again";
constexpr const char* kLacksSince =
    "this node's image lacks what only the logger can tell, which is away";

}  // namespace

StorageRole::StorageRole(const Start& start)
    : volume_(start.volume),
      door_(start.promised),
      resumed_(std::max(start.durable, start.kept)),
      committed_(resumed_),
      durable_(start.durable),
      settled_(resumed_),
      prepared_(resumed_) {}

void StorageRole::received(ConnectionId from, ToStorage message, Actions& out) {
  if (const auto* open = std::get_if<OpenStorage>(&message)) return hear(from, *open, out);
  if (!door_.hears(from)) {
    return refuse(from, ErrorCode::kStaleEpoch,
                  "the storage node does not listen to this connection: a coordinator of epoch " +
                      std::to_string(door_.epoch().value) + " came later, or none was opened",
                  out);
  }
  std::visit([&](auto& heard) { hear(from, heard, out); }, message);
}

void StorageRole::refuse(ConnectionId to, ErrorCode code, std::string message, Actions& out) {
  door_.leave(to);
  out.emplace_back(Send{to, Refused{volume_, door_.epoch(), Error{code, std::move(message)}}});
}

void StorageRole::hear(ConnectionId from, const OpenStorage& message, Actions& out) {
  if (starting_over_) {
    const std::string why = failed_ ? std::string(", and its disk fails: ") + failed_->message : "";
    return refuse(from, ErrorCode::kUnavailable, kStartingOver + why, out);
  }
  const auto before = door_.current();
  const auto asked = door_.ask(from, message.epoch);
  if (asked == ParticipantDoor::Asked::kStale) {
    return refuse(from, ErrorCode::kStaleEpoch,
                  "epoch " + std::to_string(message.epoch.value) +
                      " is over: the storage node has promised " +
                      std::to_string(door_.epoch().value),
                  out);
  }
  if (before && *before != from) {
    refuse(*before, ErrorCode::kUnavailable, "another connection has taken its place", out);
  }
  away_since_ = message.away_since;
  if (asked == ParticipantDoor::Asked::kPromise) {
    out.emplace_back(Promise{message.epoch});
  } else {
    open_when_ready(out);
  }
}

void StorageRole::promised(Epoch epoch, const Result<void>& result, Actions& out) {
  if (result) {
    door_.promised(epoch);
  } else if (door_.not_promised(epoch)) {
    return refuse(*door_.current(), result.error().code,
                  "epoch " + std::to_string(epoch.value) +
                      " could not be promised: " + result.error().message,
                  out);
  }
  open_when_ready(out);
}

void StorageRole::open_when_ready(Actions& out) {
  if (starting_over_ || !door_.can_open()) return;
  going_ = false;
  // (Who lacks what the logger had when it went can do nothing; its coordinator sees that, too.)
  if (!lacks_since()) out.emplace_back(LogIsAway{away_since_});
  out.emplace_back(
      Send{door_.open(), StorageOpened{volume_, door_.epoch(), committed_, durable_, failed_}});
}

void StorageRole::hear(ConnectionId from, const Resume& message, Actions& out) {
  if (message.start_over && message.epoch == door_.epoch()) return start_over(out);
  if (lacks_since()) return refuse(from, ErrorCode::kUnavailable, kLacksSince, out);
  const SequenceNumber known = std::max(settled_, catching_up_.value_or(committed_));
  if (message.epoch != door_.epoch() || message.settled < known) {
    return refuse(from, ErrorCode::kProtocol,
                  "the coordinator of epoch " + std::to_string(message.epoch.value) +
                      " knows of nothing behind #" + std::to_string(message.settled.value) +
                      ", but #" + std::to_string(known.value) + " is settled here, in epoch " +
                      std::to_string(door_.epoch().value) +
                      ": its history is not that of this image",
                  out);
  }
  going_ = true;
  out.emplace_back(Forget{});
  rollbacks_.clear();
  resumed_ = message.settled;
  prepared_ = message.settled;
  settled_ = message.settled;
  prepared_bytes_resumed_ = prepared_bytes_;
  told_caught_up_ = false;
  progress_ = true;
  commit_or_catch_up(out);
}

// What lies between what is committed and what the connection began with is in the history alone.
void StorageRole::commit_or_catch_up(Actions& out) {
  if (catching_up_) return;
  if (committed_ < resumed_) {
    catching_up_ = resumed_;
    out.emplace_back(CatchUp{committed_, resumed_, resumed_});
    return;
  }
  if (const auto heard = door_.heard(); heard && !told_caught_up_) {
    told_caught_up_ = true;
    out.emplace_back(Send{*heard, CaughtUp{volume_, door_.epoch(), committed_}});
  }
  if (committed_ >= settled_) return;
  if (rollbacks_.empty() || rollbacks_.front().sequence > settled_) return commit(settled_, out);
  // What it changed, the history knows.
  const Rollback rollback = rollbacks_.front();
  rollbacks_.pop_front();
  const SequenceNumber before{rollback.sequence.value - 1};
  if (committed_ < before) commit(before, out);
  catching_up_ = rollback.sequence;
  out.emplace_back(CatchUp{rollback.target, before, rollback.sequence});
}

void StorageRole::commit(SequenceNumber settled, Actions& out) {
  committed_ = settled;
  out.emplace_back(Commit{settled});
}

void StorageRole::caught_up(SequenceNumber at, Actions& out) {
  CHECK(catching_up_ == at);
  catching_up_.reset();
  committed_ = at;
  commit_or_catch_up(out);
}

// Whether its image is to be made anew, the coordinator says when it opens again.
void StorageRole::outlived(Actions& out) {
  if (starting_over_ || !catching_up_) return;
  catching_up_.reset();
  if (const auto heard = door_.heard()) refuse(*heard, ErrorCode::kUnavailable, kOutlived, out);
}

void StorageRole::start_over(Actions& out) {
  starting_over_ = true;
  if (const auto heard = door_.heard()) refuse(*heard, ErrorCode::kUnavailable, kStartingOver, out);
  out.emplace_back(StartOver{});
}

void StorageRole::started_over(Actions& out) {
  CHECK(starting_over_);
  starting_over_ = false;
  resumed_ = committed_ = durable_ = settled_ = prepared_ = SequenceNumber{};
  catching_up_.reset();
  rollbacks_.clear();
  open_when_ready(out);
}

void StorageRole::hear(ConnectionId from, WriteMessage& message, Actions& out) {
  const Stamp& stamp = message.stamp;
  if (stamp.epoch != door_.epoch() || stamp.sequence <= prepared_) {
    return refuse(from, ErrorCode::kProtocol,
                  "write #" + std::to_string(stamp.sequence.value) + " of epoch " +
                      std::to_string(stamp.epoch.value) + ": expected one above #" +
                      std::to_string(prepared_.value) + " of epoch " +
                      std::to_string(door_.epoch().value),
                  out);
  }
  prepared_ = stamp.sequence;
  prepared_bytes_ += lag_bytes(message.write);
  const SequenceNumber settled = message.settled;
  if (message.write.kind == WriteKind::kRollback) {
    rollbacks_.push_back({stamp.sequence, message.write.target});
    // Who has sent it counts it; it is not prepared, so the storage does not.
    rollback_bytes_ += lag_bytes(message.write);
    progress_ = true;
  } else {
    out.emplace_back(Prepare{std::move(message)});
  }
  settle(settled, out);
}

void StorageRole::hear(ConnectionId from, const VoidMessage& message, Actions& out) {
  if (message.epoch != door_.epoch() || message.first <= committed_ ||
      message.last < message.first) {
    return refuse(from, ErrorCode::kProtocol,
                  "void of #" + std::to_string(message.first.value) + " to #" +
                      std::to_string(message.last.value) + " of epoch " +
                      std::to_string(message.epoch.value) + ": expected numbers above #" +
                      std::to_string(committed_.value) + ", which is committed, of epoch " +
                      std::to_string(door_.epoch().value),
                  out);
  }
  std::erase_if(rollbacks_, [&](const Rollback& rollback) {
    return rollback.sequence >= message.first && rollback.sequence <= message.last;
  });
  out.emplace_back(Drop{message});
}

void StorageRole::hear(ConnectionId from, const CommitMessage& message, Actions& out) {
  if (message.epoch != door_.epoch()) {
    return refuse(from, ErrorCode::kProtocol,
                  "commit of epoch " + std::to_string(message.epoch.value) + ": expected " +
                      std::to_string(door_.epoch().value),
                  out);
  }
  settle(message.settled, out);
}

// What has to be asked of the history first, as after a rollback, nobody can ask now.
void StorageRole::hear(ConnectionId from, const Harden& message, Actions& out) {
  if (message.epoch != door_.epoch() || message.settled < settled_) {
    return refuse(from, ErrorCode::kProtocol,
                  "what is settled is to be made durable up to #" +
                      std::to_string(message.settled.value) + " of epoch " +
                      std::to_string(message.epoch.value) + ", but #" +
                      std::to_string(settled_.value) + " of epoch " +
                      std::to_string(door_.epoch().value) + " is settled here",
                  out);
  }
  settle(message.settled, out);
  if (committed_ == message.settled && !catching_up_) {
    out.emplace_back(HardenNow{message.settled});
    return;
  }
  out.emplace_back(Send{from, Hardened{volume_, door_.epoch(), message.settled,
                                       Error{ErrorCode::kUnavailable,
                                             "the storage node is catching up with the history"}}});
}

void StorageRole::hear(ConnectionId from, const LogLost& message, Actions& out) {
  if (message.epoch != door_.epoch() || away_since_ != message.since ||
      committed_ < message.since) {
    return refuse(from, ErrorCode::kProtocol,
                  "the log is lost since #" + std::to_string(message.since.value) + " in epoch " +
                      std::to_string(message.epoch.value) +
                      ": expected that it is away since then, "
                      "in epoch " +
                      std::to_string(door_.epoch().value) + ", and that #" +
                      std::to_string(committed_.value) + ", which is committed here, is not before",
                  out);
  }
  if (durable_ < message.since) out.emplace_back(LogIsLost{});
}

void StorageRole::hardened(SequenceNumber settled, const Result<void>& result, Actions& out) {
  const auto heard = door_.heard();
  if (!heard) return;
  Hardened answer{volume_, door_.epoch(), settled, std::nullopt};
  if (!result) answer.failed = result.error();
  out.emplace_back(Send{*heard, std::move(answer)});
}

void StorageRole::settle(SequenceNumber settled, Actions& out) {
  settled_ = std::max(settled_, settled);
  commit_or_catch_up(out);
}

bool StorageRole::durable(SequenceNumber sequence) {
  CHECK(sequence <= committed_);
  if (sequence <= durable_) return false;
  durable_ = sequence;
  progress_ = true;
  return true;
}

// Who has left it alone begins anew with it.
void StorageRole::image_failed(const std::optional<Error>& why, Actions& out) {
  const bool is_back = failed_ && !why;
  failed_ = why;
  progress_ = true;
  const auto heard = door_.heard();
  if (is_back && heard && !going_) refuse(*heard, ErrorCode::kUnavailable, kTriedAgain, out);
}

void StorageRole::granted(std::uint64_t bytes) {
  if (granted_ == bytes) return;
  granted_ = bytes;
  progress_ = true;
}

void StorageRole::fetched(const CatchUpProgress& progress) {
  if (catch_up_ == progress) return;
  catch_up_ = progress;
  progress_ = true;
}

void StorageRole::flush(Actions& out) {
  const auto heard = door_.heard();
  if (!heard || !going_ || !progress_) return;
  progress_ = false;
  const std::uint64_t all = granted_ + rollback_bytes_;
  const std::uint64_t granted = all > prepared_bytes_resumed_ ? all - prepared_bytes_resumed_ : 0;
  out.emplace_back(Send{*heard, StorageProgress{volume_, door_.epoch(), resumed_, durable_, granted,
                                                catch_up_, failed_}});
}

}  // namespace mariner::replication
