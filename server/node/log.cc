#include "server/node/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>

namespace mariner {
namespace {

// Writes each line with one system call, so that lines of several processes do not mix.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int fd) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    line_.assign(message.payload.data(), message.payload.size());
    line_ += '\n';
    std::string_view rest = line_;
    while (!rest.empty()) {
      const auto written = ::write(fd_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      // Nobody could be told that the log cannot be written.
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void flush_() override {}

  int fd_;
  std::string line_;
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

VersionTime wall_time() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return VersionTime{static_cast<std::uint64_t>(std::chrono::nanoseconds(since_epoch).count())};
}

}  // namespace

Log::Log(const Options& options)
    : style_{options.format, is_journal(options.fd)},
      logger_(std::make_unique<spdlog::logger>("mariner",
                                               std::make_shared<DescriptorSink>(options.fd))) {
  logger_->set_level(spdlog_level(options.level));
}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message, Fields fields) {
  if (!logger_->should_log(spdlog_level(level))) return;
  const LogLine line{level, wall_time(), message, {fields.begin(), fields.size()}};
  logger_->log(spdlog_level(level), spdlog::string_view_t(render(line, style_)));
}

bool is_journal(int fd) {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(fd, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace mariner
