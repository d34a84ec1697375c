#include "ifsck/file_reads.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "proto/check.h"

namespace mariner::ifsck {
namespace {

// What lies between two reads of a batch is read, too, and dropped.
constexpr std::size_t kGapMax = 8192;
constexpr std::size_t kBatchBytes = 128 * 1024;
constexpr std::size_t kBatchReads = 256;  // and as many gaps

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
  read.to = {};
  return {};
}

// Reads of one file that follow each other closely, in one call. What came is taken off them.
void read_at_once(std::span<FileRead> batch, int flags) {
  static thread_local std::array<std::byte, kGapMax> dropped;
  std::array<iovec, 2 * kBatchReads> places;
  std::size_t count = 0;
  const std::uint64_t begin = batch.front().offset;
  std::uint64_t end = begin;
  for (const FileRead& each : batch) {
    if (each.offset > end) places[count++] = {dropped.data(), each.offset - end};
    places[count++] = {each.to.data(), each.to.size()};
    end = each.offset + each.to.size();
  }
  const ssize_t got = ::preadv2(batch.front().fd, places.data(), static_cast<int>(count),
                                static_cast<off_t>(begin), flags);
  if (got <= 0) return;
  const std::uint64_t came = begin + static_cast<std::uint64_t>(got);
  for (FileRead& each : batch) {
    if (each.offset >= came) break;
    const std::size_t bytes = std::min<std::uint64_t>(came - each.offset, each.to.size());
    each.offset += bytes;
    each.to = each.to.subspan(bytes);
  }
}

bool is_read(std::span<const FileRead> batch) {
  return std::ranges::all_of(batch, [](const FileRead& each) { return each.to.empty(); });
}

// Whatever it takes: an error of one is told of that one.
Result<void> read_batch(std::span<FileRead> batch) {
  while (!batch.empty() && batch.front().to.empty()) batch = batch.subspan(1);
  if (batch.size() > 1) read_at_once(batch, 0);
  for (FileRead& each : batch) {
    if (const auto done = read_whole(each); !done) return done;
  }
  return {};
}

Result<void> read_by_many(std::span<const std::span<FileRead>> batches) {
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::optional<Error> error;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < batches.size();) {
      if (auto done = read_batch(batches[i]); !done) {
        const std::lock_guard guard(lock);
        error = done.error();
        next = batches.size();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < std::min(kReadersMax, batches.size())) others.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that there are will do.
    }
    work();
  }
  if (error) return *error;
  return {};
}

std::vector<std::span<FileRead>> make_batches(std::span<FileRead> reads) {
  std::ranges::sort(reads, {},
                    [](const FileRead& each) { return std::tuple(each.fd, each.offset); });
  std::vector<std::span<FileRead>> batches;
  while (!reads.empty()) {
    const FileRead& first = reads.front();
    std::size_t count = 1;
    for (std::uint64_t end = first.offset + first.to.size();
         count < std::min(reads.size(), kBatchReads); ++count) {
      const FileRead& each = reads[count];
      if (each.fd != first.fd || each.offset < end || each.offset - end > kGapMax) break;
      end = each.offset + each.to.size();
      if (end - first.offset > kBatchBytes) break;
    }
    batches.push_back(reads.first(count));
    reads = reads.subspan(count);
  }
  return batches;
}

}  // namespace

Result<void> read_files(std::span<FileRead> reads) {
  const std::vector<std::span<FileRead>> batches = make_batches(reads);
  std::span<const std::span<FileRead>> left(batches);
  for (; !left.empty(); left = left.subspan(1)) {
    read_at_once(left.front(), RWF_NOWAIT);
    if (!is_read(left.front())) break;
  }
  return read_by_many(left);
}

}  // namespace mariner::ifsck
