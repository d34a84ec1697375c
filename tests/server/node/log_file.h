// A log that a test reads.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "proto/check.h"
#include "server/node/log.h"

namespace mariner::node::testing {

class LogFile {
 public:
  // Behind what the file has.
  explicit LogFile(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    CHECK(fd_ >= 0);
  }
  ~LogFile() { ::close(fd_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  [[nodiscard]] Log& log() { return log_; }

  // The lines of such a file.
  static std::vector<std::string> lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

 private:
  const int fd_;
  Log log_{{.fd = fd_}};
};

}  // namespace mariner::node::testing
