#include "replication/logger_host.h"

#include <utility>

namespace mariner::replication {

LoggerHost::LoggerHost(const LoggerRole::Start& start, Executor& executor,
                       ClusterLoggerParticipant& log, PromiseStore& promises)
    : volume_(start.volume), executor_(executor), log_(log), promises_(promises), role_(start) {}

ConnectionId LoggerHost::accept(Answer answer) {
  const ConnectionId id{++last_connection_};
  peers_[id] = std::move(answer);
  return id;
}

void LoggerHost::received(ConnectionId from, ToLogger message) {
  LoggerRole::Actions actions;
  role_.received(from, std::move(message), actions);
  run(actions);
  if (const SequenceNumber through = role_.in_an_image(); through > applied_) {
    applied_ = through;
    log_.applied(through);
  }
}

void LoggerHost::closed(ConnectionId connection) {
  role_.disconnected(connection);
  peers_.erase(connection);
}

void LoggerHost::want_room() {
  LoggerRole::Actions actions;
  role_.want_room(actions);
  run(actions);
}

void LoggerHost::run(LoggerRole::Actions& actions) {
  flush_later();
  queue_.run(actions, [this](LoggerRole::Action& action) {
    carry_out(action);
    return true;
  });
}

void LoggerHost::carry_out(LoggerRole::Action& action) {
  if (auto* promise = std::get_if<LoggerRole::Promise>(&action)) {
    promises_.promise(volume_, promise->epoch, promise->floor,
                      [this, promise = *promise](const Result<void>& result) {
                        LoggerRole::Actions more;
                        role_.promised(promise, result, more);
                        run(more);
                      });
  } else if (auto* write = std::get_if<LoggerRole::Append>(&action)) {
    log_.log(write->message,
             [this, sequence = write->message.stamp.sequence](const Result<void>& result) {
               LoggerRole::Actions more;
               role_.appended(sequence, result, more);
               run(more);
             });
  } else if (auto* lost = std::get_if<LoggerRole::AppendVoid>(&action)) {
    const SequenceRange numbers{lost->message.first, lost->message.last};
    log_.log_void(lost->message, [this, numbers](const Result<void>& result) {
      LoggerRole::Actions more;
      role_.void_appended(numbers, result, more);
      run(more);
    });
  } else if (auto* anew = std::get_if<LoggerRole::BeginHistory>(&action)) {
    log_.begin_anew(anew->at, anew->time, [this, anew = *anew](const Result<void>& result) {
      LoggerRole::Actions more;
      role_.begun_anew(anew, result, more);
      run(more);
    });
  } else {
    const auto& send = std::get<LoggerRole::Send>(action);
    const auto peer = peers_.find(send.to);
    if (peer != peers_.end()) peer->second(send.message);
  }
}

// What a burst of events has settled goes as one message.
void LoggerHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  executor_.defer([this] {
    flushing_ = false;
    LoggerRole::Actions actions;
    role_.flush(actions);
    if (!actions.empty()) run(actions);
  });
}

}  // namespace mariner::replication
