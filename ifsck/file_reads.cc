#include "ifsck/file_reads.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "proto/check.h"

namespace mariner::ifsck {
namespace {

// As far as the page cache has it; false: not all of it.
bool read_cached(FileRead& read) {
  const iovec place{read.to.data(), read.to.size()};
  const ssize_t got = ::preadv2(read.fd, &place, 1, static_cast<off_t>(read.offset), RWF_NOWAIT);
  if (got <= 0) return false;
  read.offset += static_cast<std::uint64_t>(got);
  read.to = read.to.subspan(static_cast<std::size_t>(got));
  return read.to.empty();
}

Result<void> read_whole(FileRead& read) {
  while (!read.to.empty()) {
    const ssize_t got =
        ::pread(read.fd, read.to.data(), read.to.size(), static_cast<off_t>(read.offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, *read.path + ": a read");
    if (got == 0) break;
    read.offset += static_cast<std::uint64_t>(got);
    read.to = read.to.subspan(static_cast<std::size_t>(got));
  }
  std::ranges::fill(read.to, std::byte{});
  return {};
}

Result<void> read_by_many(std::span<FileRead> reads) {
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::optional<Error> error;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < reads.size();) {
      if (auto done = read_whole(reads[i]); !done) {
        const std::lock_guard guard(lock);
        error = done.error();
        next = reads.size();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < std::min(kReadersMax, reads.size())) others.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that there are will do.
    }
    work();
  }
  if (error) return *error;
  return {};
}

}  // namespace

Result<void> read_files(std::span<FileRead> reads) {
  while (!reads.empty() && read_cached(reads.front())) reads = reads.subspan(1);
  return read_by_many(reads);
}

}  // namespace mariner::ifsck
