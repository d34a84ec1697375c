#include "tests/bench/append_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kVectorsMax = 1024;  // IOV_MAX

}  // namespace

Result<std::unique_ptr<AppendLog>> AppendLog::create(const std::string& path, Executor& executor) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error(errno, path + ": create");
  return std::unique_ptr<AppendLog>(new AppendLog(path, fd, executor));
}

AppendLog::AppendLog(std::string path, int fd, Executor& executor)
    : path_(std::move(path)), fd_(fd), executor_(executor), thread_([this] { work(); }) {}

AppendLog::~AppendLog() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(waiting_.empty());
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(fd_);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void AppendLog::append(const PayloadSlice& payload, Done done) {
  written_bytes_ += payload.length;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({payload, std::move(done)});
  }
  changed_.notify_all();
}

void AppendLog::work() {
  while (true) {
    std::vector<Waiting> some;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      some.swap(waiting_);
    }
    Result<void> result = write(some);
    executor_.post([some = std::move(some), result = std::move(result)]() mutable {
      for (Waiting& one : some) one.done(result);
    });
  }
}

Result<void> AppendLog::write(const std::vector<Waiting>& some) const {
  std::vector<iovec> vectors;
  for (std::size_t first = 0; first < some.size(); first += kVectorsMax) {
    vectors.clear();
    std::size_t expected = 0;
    for (std::size_t i = first; i < std::min(first + kVectorsMax, some.size()); ++i) {
      const std::span<const std::byte> bytes = some[i].payload.bytes();
      vectors.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
      expected += bytes.size();
    }
    const ssize_t n = ::writev(fd_, vectors.data(), static_cast<int>(vectors.size()));
    if (n < 0) return errno_error(errno, path_ + ": write");
    if (static_cast<std::size_t>(n) != expected) return errno_error(ENOSPC, path_ + ": write");
  }
  if (::fdatasync(fd_) != 0) return errno_error(errno, path_ + ": fdatasync");
  return {};
}

}  // namespace mariner::bench
