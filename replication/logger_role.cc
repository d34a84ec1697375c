#include "replication/logger_role.h"

#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::replication {

// Below the first hole.
SequenceNumber LoggerRole::settled_at(const Start& start) {
  return start.holes.empty() ? start.last : SequenceNumber{start.holes.front().first.value - 1};
}

LoggerRole::LoggerRole(const Start& start)
    : volume_(start.volume),
      door_(start.promised),
      settled_(settled_at(start)),
      last_(start.last),
      end_(start.end),
      last_time_(start.last_time),
      floor_(std::max(start.floor, start.last_time)),
      frontier_(start.frontier),
      in_an_image_(start.frontier),
      told_(settled_at(start)) {
  SequenceNumber next = settled_at(start).next();
  const auto settle_before = [&](SequenceNumber end) {
    if (next < end) settled_.settle({next, SequenceNumber{end.value - 1}});
  };
  for (const SequenceRange& hole : start.holes) {
    CHECK(hole.first >= next && hole.last >= hole.first && hole.last <= last_);
    settle_before(hole.first);
    failed_.add(hole);
    next = hole.last.next();
  }
  settle_before(last_.next());
}

void LoggerRole::received(ConnectionId from, ToLogger message, Actions& out) {
  if (const auto* open = std::get_if<OpenLog>(&message)) return hear(from, *open, out);
  if (!door_.hears(from)) {
    return refuse(from, ErrorCode::kStaleEpoch,
                  "the logger does not listen to this connection: a coordinator of epoch " +
                      std::to_string(door_.epoch().value) + " came later, or none was opened",
                  out);
  }
  if (begins_anew_) {
    return refuse(from, ErrorCode::kProtocol,
                  "the history begins anew: nothing is to come before that is done", out);
  }
  std::visit([&](auto& heard) { hear(from, heard, out); }, message);
}

void LoggerRole::refuse(ConnectionId to, ErrorCode code, std::string message, Actions& out) {
  door_.leave(to);
  out.emplace_back(Send{to, Refused{volume_, door_.epoch(), Error{code, std::move(message)}}});
}

void LoggerRole::hear(ConnectionId from, const OpenLog& message, Actions& out) {
  const auto before = door_.current();
  const auto asked = door_.ask(from, message.epoch);
  if (asked != ParticipantDoor::Asked::kStale) begin_ = message.begin;
  if (asked != ParticipantDoor::Asked::kStale && before && *before != from) {
    refuse(*before, ErrorCode::kUnavailable, "another connection has taken its place", out);
  }
  switch (asked) {
    case ParticipantDoor::Asked::kStale:
      return refuse(from, ErrorCode::kStaleEpoch,
                    "epoch " + std::to_string(message.epoch.value) +
                        " is over: the logger has promised " + std::to_string(door_.epoch().value),
                    out);
    case ParticipantDoor::Asked::kPromise:
      ++promising_;
      out.emplace_back(Promise{message.epoch, floor_});
      return;
    case ParticipantDoor::Asked::kWaits: open_when_ready(out);
  }
}

void LoggerRole::promised(const Promise& promise, const Result<void>& result, Actions& out) {
  CHECK(promising_ > 0);
  --promising_;
  if (result) {
    door_.promised(promise.epoch);
  } else if (door_.not_promised(promise.epoch)) {
    return refuse(*door_.current(), result.error().code,
                  "epoch " + std::to_string(promise.epoch.value) +
                      " could not be promised: " + result.error().message,
                  out);
  }
  const auto heard = door_.heard();
  if (heard && promise.epoch == door_.epoch()) {
    // A floor was raised for who is heard.
    if (!result) return refuse(*heard, result.error().code, result.error().message, out);
    out.emplace_back(Send{*heard, FloorRaised{volume_, promise.epoch, promise.floor}});
    return;
  }
  open_when_ready(out);
}

void LoggerRole::want_room(Actions& out) {
  const auto heard = door_.heard();
  if (heard) out.emplace_back(Send{*heard, RoomWanted{volume_, door_.epoch()}});
}

void LoggerRole::open_when_ready(Actions& out) {
  if (appending_ > 0 || !door_.can_open()) return;
  if (last_ < begin_) {
    beginning_ = true;
    ++appending_;
    out.emplace_back(AppendVoid{VoidMessage{volume_, door_.epoch(), last_.next(), begin_}});
    last_ = begin_;
    return;
  }
  const ConnectionId to = door_.open();
  told_ = settled_.value();
  out.emplace_back(
      Send{to, LogOpened{volume_, door_.epoch(), last_, failed_.list(), floor_, frontier_, end_}});
}

// Nothing else is under way, and nobody is heard yet.
void LoggerRole::begun(SequenceRange numbers, const Result<void>& result, Actions& out) {
  beginning_ = false;
  if (result) {
    settled_.settle(numbers);
    return open_when_ready(out);
  }
  last_ = SequenceNumber{numbers.first.value - 1};
  if (const auto waiting = door_.current()) {
    refuse(*waiting, result.error().code, "the log cannot begin: " + result.error().message, out);
  }
}

void LoggerRole::hear(ConnectionId from, WriteMessage& message, Actions& out) {
  const Stamp& stamp = message.stamp;
  if (stamp.epoch != door_.epoch() || stamp.sequence != last_.next() || stamp.time <= last_time_) {
    return refuse(from, ErrorCode::kProtocol,
                  "write #" + std::to_string(stamp.sequence.value) + " of epoch " +
                      std::to_string(stamp.epoch.value) + " at " + std::to_string(stamp.time.ns) +
                      " ns: expected #" + std::to_string(last_.next().value) + " of epoch " +
                      std::to_string(door_.epoch().value) + " after " +
                      std::to_string(last_time_.ns) + " ns",
                  out);
  }
  last_ = stamp.sequence;
  end_ = end_after(message);
  last_time_ = stamp.time;
  floor_ = std::max(floor_, stamp.time);
  frontier_ = std::max(frontier_, message.frontier);
  in_an_image_ = std::max(in_an_image_, frontier_);
  ++appending_;
  out.emplace_back(Append{std::move(message)});
}

void LoggerRole::appended(SequenceNumber sequence, const Result<void>& result, Actions& out) {
  CHECK(appending_ > 0);
  --appending_;
  if (result) {
    settled_.settle(sequence);
  } else {
    failed_.add({sequence, sequence});
    end_ = last_;
    if (const auto heard = door_.heard()) {
      out.emplace_back(Send{*heard, LogFailed{volume_, door_.epoch(), sequence, result.error()}});
    }
  }
  open_when_ready(out);
}

void LoggerRole::hear(ConnectionId from, const VoidMessage& message, Actions& out) {
  const SequenceRange numbers{message.first, message.last};
  const bool ascends = numbers.last >= numbers.first;
  const bool follows = ascends && numbers.first == last_.next();
  const bool failed = ascends && numbers.last <= last_ && failed_.contains(numbers);
  if (message.epoch != door_.epoch() || !(follows || failed)) {
    return refuse(from, ErrorCode::kProtocol,
                  "void of #" + std::to_string(message.first.value) + " to #" +
                      std::to_string(message.last.value) +
                      ": expected numbers that failed, or from #" +
                      std::to_string(last_.next().value) + " on",
                  out);
  }
  if (failed) failed_.remove(numbers);
  last_ = std::max(last_, message.last);
  ++appending_;
  out.emplace_back(AppendVoid{message});
}

void LoggerRole::void_appended(SequenceRange numbers, const Result<void>& result, Actions& out) {
  CHECK(appending_ > 0);
  --appending_;
  if (beginning_) return begun(numbers, result, out);
  if (result) {
    settled_.settle(numbers);
  } else {
    failed_.add(numbers);
  }
  if (const auto heard = door_.heard(); heard && !result) {
    refuse(*heard, result.error().code, "could not be voided: " + result.error().message, out);
  }
  open_when_ready(out);
}

void LoggerRole::hear(ConnectionId from, const FrontierMessage& message, Actions& out) {
  const SequenceNumber highest = std::max(message.frontier, message.in_an_image);
  if (highest > settled_.value()) {
    return refuse(from, ErrorCode::kProtocol,
                  "frontier #" + std::to_string(highest.value) + " is above what is settled, #" +
                      std::to_string(settled_.value().value),
                  out);
  }
  frontier_ = std::max(frontier_, message.frontier);
  in_an_image_ = std::max(in_an_image_, highest);
}

void LoggerRole::hear(ConnectionId /*from*/, const RaiseFloor& message, Actions& out) {
  floor_ = std::max(floor_, message.time);
  ++promising_;
  out.emplace_back(Promise{door_.epoch(), floor_});
}

void LoggerRole::hear(ConnectionId from, const BeginAnew& message, Actions& out) {
  const bool empty = end_.value == 0 && failed_.empty() && appending_ == 0;
  if (message.epoch != door_.epoch() || !empty || message.at <= last_) {
    return refuse(
        from, ErrorCode::kProtocol,
        "the history is to begin anew behind #" + std::to_string(message.at.value) + " in epoch " +
            std::to_string(message.epoch.value) + ": expected a log that has nothing, and epoch " +
            std::to_string(door_.epoch().value) + ", found #" + std::to_string(last_.value),
        out);
  }
  ++appending_;
  begins_anew_ = true;
  out.emplace_back(BeginHistory{message.at, message.time});
}

void LoggerRole::begun_anew(const BeginHistory& beginning, const Result<void>& result,
                            Actions& out) {
  CHECK(appending_ > 0);
  --appending_;
  begins_anew_ = false;
  if (result) {
    settled_.settle({last_.next(), beginning.at});
    last_ = end_ = frontier_ = in_an_image_ = beginning.at;
    last_time_ = beginning.time;
    floor_ = std::max(floor_, beginning.time);
  } else if (const auto heard = door_.heard()) {
    refuse(*heard, result.error().code, "the log cannot begin anew: " + result.error().message,
           out);
  }
  open_when_ready(out);
}

void LoggerRole::flush(Actions& out) {
  const auto heard = door_.heard();
  if (!heard || told_ == settled_.value()) return;
  told_ = settled_.value();
  out.emplace_back(Send{*heard, Logged{volume_, door_.epoch(), told_}});
}

}  // namespace mariner::replication
