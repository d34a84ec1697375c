// Carries a LoggerRole's actions out: the log, the promises, and answers to whoever is connected.
//
// The daemon and the simulator use it alike; what a connection is, they know. Owner's thread only;
// nothing may be under way when it is destroyed, or its executor drops what is.
#pragma once

#include <map>

#include "proto/executor.h"
#include "replication/action_queue.h"
#include "replication/logger_role.h"
#include "replication/participant.h"

namespace mariner::replication {

class LoggerHost {
 public:
  using Answer = UniqueFunction<void(const FromLogger&)>;

  // All outlive it.
  LoggerHost(const LoggerRole::Start& start, Executor& executor, ClusterLoggerParticipant& log,
             PromiseStore& promises);

  // A coordinator's conversation begins; `answer` sends it what there is to say, never from within
  // a call but received(), promised and logged.
  ConnectionId accept(Answer answer);
  void received(ConnectionId from, ToLogger message);
  void closed(ConnectionId connection);

  // As LoggerRole has it.
  void want_room();

  [[nodiscard]] const LoggerRole& role() const { return role_; }

 private:
  void run(LoggerRole::Actions& actions);
  void carry_out(LoggerRole::Action& action);
  void flush_later();

  const VolumeId volume_;
  Executor& executor_;
  ClusterLoggerParticipant& log_;
  PromiseStore& promises_;
  LoggerRole role_;
  std::map<ConnectionId, Answer> peers_;
  std::uint64_t last_connection_ = 0;
  ActionQueue<LoggerRole::Action> queue_;
  SequenceNumber applied_;  // as the log was told
  bool flushing_ = false;
};

}  // namespace mariner::replication
