#include "tests/support/watched_disk.h"

#include <utility>

namespace mariner::test {

std::vector<ByteRange> WatchedDisk::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

std::uint64_t WatchedDisk::bytes_read() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const ByteRange& read : reads_) bytes += read.length;
  return bytes;
}

void WatchedDisk::forget() {
  const std::lock_guard lock(mutex_);
  reads_.clear();
}

Result<void> WatchedDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back({offset, to.size()});
  }
  return disk_.read(offset, to);
}

Result<void> WatchedDisk::write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                                logging::Durability durability) {
  return disk_.write(offset, parts, durability);
}

void WatchedDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back({offset, to.size()});
  }
  disk_.async_read(offset, to, std::move(done));
}

void WatchedDisk::async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                              logging::Durability durability, Completion done) {
  disk_.async_write(offset, std::move(parts), durability, std::move(done));
}

}  // namespace mariner::test
