// The usual simple logger, as a rival: a record's header and payload appended to a file by write(),
// made durable by fdatasync(), under one mutex.
//
// kEach: a record is written and synchronised before the next one's turn. kGroup: whoever finds
// nobody writing writes what all waiting callers have brought, with one fdatasync for all of it.
// The file grows with each append and goes through the page cache. Thread-safe.
#pragma once

#include <sys/uio.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "proto/error.h"

namespace mariner::bench {

class NaiveLog {
 public:
  enum class Commit { kEach, kGroup };

  // Records that may be appended at a time: what one writev() takes.
  static constexpr std::size_t kWritersMax = 512;

  // Replaces the file.
  static Result<std::unique_ptr<NaiveLog>> create(const std::string& path, Commit commit);
  ~NaiveLog();
  NaiveLog(const NaiveLog&) = delete;
  NaiveLog& operator=(const NaiveLog&) = delete;

  // Durable on return.
  Result<void> append(std::span<const std::byte> payload);

  // Calls of fdatasync() so far.
  [[nodiscard]] std::uint64_t syncs();

 private:
  struct Header {
    std::uint32_t magic = 0x31474f4c;
    std::uint32_t crc = 0;  // of the payload
    std::uint64_t number = 0;
    std::uint64_t length = 0;
  };
  struct Waiting {
    Header header;
    std::span<const std::byte> payload;
    bool done = false;
    Result<void> result;
  };

  NaiveLog(std::string path, int fd, Commit commit)
      : path_(std::move(path)), fd_(fd), commit_(commit) {}
  Result<void> append_grouped(Waiting& mine, std::unique_lock<std::mutex>& lock);
  Result<void> write_and_sync(std::span<Waiting* const> records);

  const std::string path_;
  const int fd_;
  const Commit commit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting*> waiting_;
  bool writing_ = false;
  std::uint64_t next_ = 0;
  std::uint64_t syncs_ = 0;
};

}  // namespace mariner::bench
