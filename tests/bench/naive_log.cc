#include "tests/bench/naive_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::bench {

Result<std::unique_ptr<NaiveLog>> NaiveLog::create(const std::string& path, Commit commit) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error(errno, path + ": create");
  return std::unique_ptr<NaiveLog>(new NaiveLog(path, fd, commit));
}

NaiveLog::~NaiveLog() {
  CHECK(waiting_.empty() && !writing_);
  ::close(fd_);
}

Result<void> NaiveLog::append(std::span<const std::byte> payload) {
  Waiting mine;
  mine.payload = payload;
  mine.header.length = payload.size();
  mine.header.crc = crc32c(payload);
  std::unique_lock lock(mutex_);
  mine.header.number = next_++;
  if (commit_ == Commit::kGroup) return append_grouped(mine, lock);
  Waiting* const record = &mine;
  ++syncs_;
  return write_and_sync({&record, 1});
}

Result<void> NaiveLog::append_grouped(Waiting& mine, std::unique_lock<std::mutex>& lock) {
  CHECK(waiting_.size() < kWritersMax);
  waiting_.push_back(&mine);
  changed_.wait(lock, [&] { return mine.done || !writing_; });
  if (mine.done) return mine.result;
  const std::vector<Waiting*> group = std::exchange(waiting_, {});
  writing_ = true;
  ++syncs_;
  lock.unlock();
  const Result<void> result = write_and_sync(group);
  lock.lock();
  writing_ = false;
  for (Waiting* record : group) {
    record->result = result;
    record->done = true;
  }
  changed_.notify_all();
  return result;
}

Result<void> NaiveLog::write_and_sync(std::span<Waiting* const> records) {
  std::vector<iovec> vectors;
  vectors.reserve(records.size() * 2);
  std::size_t expected = 0;
  for (Waiting* record : records) {
    vectors.push_back({&record->header, sizeof(Header)});
    vectors.push_back({const_cast<std::byte*>(record->payload.data()), record->payload.size()});
    expected += sizeof(Header) + record->payload.size();
  }
  const ssize_t n = ::writev(fd_, vectors.data(), static_cast<int>(vectors.size()));
  if (n < 0) return errno_error(errno, path_ + ": write");
  if (static_cast<std::size_t>(n) != expected) return errno_error(ENOSPC, path_ + ": write");
  if (::fdatasync(fd_) != 0) return errno_error(errno, path_ + ": fdatasync");
  return {};
}

std::uint64_t NaiveLog::syncs() {
  const std::lock_guard lock(mutex_);
  return syncs_;
}

}  // namespace mariner::bench
