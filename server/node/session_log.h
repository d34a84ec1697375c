// What the sessions of initiators do, as lines of the daemon's log. Loop's thread.
#pragma once

#include <string_view>

#include "proto/executor.h"
#include "server/iscsi/observer.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"

namespace mariner::node {

class SessionLog final : public iscsi::Observer {
 public:
  // Both outlive it.
  SessionLog(Executor& executor, Log& log) : executor_(executor), log_(log) {}

  void session_opened(const iscsi::SessionInfo& session) override;
  void connection_joined(const iscsi::SessionInfo& session,
                         const iscsi::Endpoints& endpoints) override;
  void connection_ended(const iscsi::ConnectionEnd& end) override;
  void portal_failed(std::string_view portal, std::string_view what) override;

 private:
  Executor& executor_;
  Log& log_;
  LogLimiter login_failures_{{.lines_max = 60}};  // who guesses is not to fill the log
};

}  // namespace mariner::node
