// Where a daemon logs: lines to standard error, as text or as JSON, for a person, the journal or a
// collector. Any thread may call.
//
//   log.warning("login failed", {{"address", peer}, {"key", "AuthMethod"}, {"offered", offered}});
//
// Libraries do not log: they return errors, or call a reporter that the daemon connects to this.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>

#include "server/node/log_line.h"

namespace spdlog {
class logger;
}

namespace mariner {

class Log {
 public:
  struct Options {
    LogFormat format = LogFormat::kText;
    LogLevel level = LogLevel::kInfo;  // what is less is not written
    int fd = 2;                        // outlives the Log; not closed
  };

  explicit Log(const Options& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  using Fields = std::initializer_list<LogField>;
  void debug(std::string_view message, Fields fields = {}) {
    write(LogLevel::kDebug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) {
    write(LogLevel::kInfo, message, fields);
  }
  void warning(std::string_view message, Fields fields = {}) {
    write(LogLevel::kWarning, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) {
    write(LogLevel::kError, message, fields);
  }
  void write(LogLevel level, std::string_view message, Fields fields);

 private:
  LogStyle style_;
  std::unique_ptr<spdlog::logger> logger_;
};

// True if `fd` is connected to the journal (systemd.exec(5), $JOURNAL_STREAM).
[[nodiscard]] bool is_journal(int fd);

}  // namespace mariner
