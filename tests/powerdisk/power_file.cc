#include "tests/powerdisk/power_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::powerdisk {
namespace {

constexpr std::uint64_t round_down(std::uint64_t x) { return x & ~std::uint64_t{kSectorBytes - 1}; }
constexpr std::uint64_t round_up(std::uint64_t x) { return round_down(x + kSectorBytes - 1); }

// Fills `bytes` from the file, with zeros past its end. 0 or -errno.
int read_backing(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (n == 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  return 0;
}

// Gathers neighbouring sectors into large writes.
class Gatherer {
 public:
  explicit Gatherer(std::function<void(std::uint64_t, std::span<const std::byte>)> out)
      : out_(std::move(out)) {}
  void add(std::uint64_t offset, std::span<const std::byte> sector) {
    if (offset != offset_ + bytes_.size() || bytes_.size() >= kGatherBytesMax) finish();
    if (bytes_.empty()) offset_ = offset;
    bytes_.insert(bytes_.end(), sector.begin(), sector.end());
  }
  void finish() {
    if (!bytes_.empty()) out_(offset_, bytes_);
    bytes_.clear();
  }

 private:
  static constexpr std::size_t kGatherBytesMax = 1u << 20;
  std::function<void(std::uint64_t, std::span<const std::byte>)> out_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

PowerFile::PowerFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  struct stat st {};
  CHECK(::fstat(fd_, &st) == 0);
  size_ = static_cast<std::uint64_t>(st.st_size);
}

PowerFile::~PowerFile() { ::close(fd_); }

ssize_t PowerFile::read(std::uint64_t offset, std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  return read_locked(offset, bytes);
}

ssize_t PowerFile::read_locked(std::uint64_t offset, std::span<std::byte> bytes) {
  if (offset >= size_) return 0;
  bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), size_ - offset));
  if (const int error = read_backing(fd_, offset, bytes); error != 0) return error;
  overlay_.read_over(offset, bytes);
  return static_cast<ssize_t>(bytes.size());
}

int PowerFile::write(std::uint64_t offset, std::span<const std::byte> bytes,
                     std::atomic<std::uint64_t>& ids, WriteId* id) {
  const std::lock_guard lock(mutex_);
  *id = WriteId{++ids};
  const int result = write_sectors_locked(offset, bytes, *id);
  if (result == 0) size_ = std::max(size_, offset + bytes.size());
  return result;
}

int PowerFile::write_sectors_locked(std::uint64_t offset, std::span<const std::byte> bytes,
                                    WriteId id) {
  const std::uint64_t begin = round_down(offset);
  const std::uint64_t end = round_up(offset + bytes.size());
  if (begin == offset && end == offset + bytes.size()) {
    overlay_.write(offset, bytes, id);
    return 0;
  }
  // The kernel's page cache would write these sectors out whole: merge with what is there.
  std::vector<std::byte> whole(end - begin, std::byte{0});
  const auto head = std::span(whole).first(kSectorBytes);
  const auto tail = std::span(whole).last(kSectorBytes);
  if (const ssize_t n = read_locked(begin, head); n < 0) return static_cast<int>(n);
  if (const ssize_t n = read_locked(end - kSectorBytes, tail); n < 0) return static_cast<int>(n);
  std::memcpy(whole.data() + (offset - begin), bytes.data(), bytes.size());
  overlay_.write(begin, whole, id);
  return 0;
}

int PowerFile::write_zeros(ByteRange range, bool grow, std::atomic<std::uint64_t>& ids) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = grow ? range.end() : std::min(range.end(), size_);
  if (range.offset >= end) return 0;
  const std::uint64_t inner_begin = round_up(range.offset);
  const std::uint64_t inner_end = round_down(end);
  const std::array<std::byte, kSectorBytes> zeros{};
  const auto edge = [&](std::uint64_t from, std::uint64_t to) {
    return from < to ? write_sectors_locked(from, std::span(zeros).first(to - from), WriteId{++ids})
                     : 0;
  };
  if (inner_begin >= inner_end) {
    const std::uint64_t middle = std::min(inner_begin, end);
    if (const int error = edge(range.offset, middle); error != 0) return error;
    if (const int error = edge(middle, end); error != 0) return error;
  } else {
    if (const int error = edge(range.offset, inner_begin); error != 0) return error;
    overlay_.write_zeros({inner_begin, inner_end - inner_begin}, WriteId{++ids});
    if (const int error = edge(inner_end, end); error != 0) return error;
  }
  size_ = std::max(size_, end);
  return 0;
}

int PowerFile::truncate(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return -errno;
  overlay_.truncate(size);
  size_ = size;
  return 0;
}

int PowerFile::allocate(ByteRange range, bool keep_size) {
  const std::lock_guard lock(mutex_);
  if (::fallocate(fd_, keep_size ? FALLOC_FL_KEEP_SIZE : 0, static_cast<off_t>(range.offset),
                  static_cast<off_t>(range.length)) != 0) {
    return -errno;
  }
  if (!keep_size) size_ = std::max(size_, range.end());
  return 0;
}

void PowerFile::persist(std::uint64_t offset, std::span<const std::byte> sector) {
  if (offset >= size_) return;
  sector = sector.first(std::min<std::uint64_t>(sector.size(), size_ - offset));
  while (!sector.empty()) {
    const ssize_t n = ::pwrite(fd_, sector.data(), sector.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (persist_error_ == 0) persist_error_ = -errno;
      return;
    }
    sector = sector.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

int PowerFile::flush() {
  const std::lock_guard lock(mutex_);
  Gatherer out([this](std::uint64_t at, std::span<const std::byte> run) { persist(at, run); });
  overlay_.flush([&](std::uint64_t at, std::span<const std::byte> s) { out.add(at, s); });
  out.finish();
  // The size is part of what fsync makes durable, also where no sector reaches it.
  struct stat st {};
  if (::fstat(fd_, &st) == 0 && static_cast<std::uint64_t>(st.st_size) < size_ &&
      ::ftruncate(fd_, static_cast<off_t>(size_)) != 0) {
    return -errno;
  }
  return std::exchange(persist_error_, 0);
}

int PowerFile::flush_write(ByteRange range, WriteId id) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t begin = round_down(range.offset);
  Gatherer out([this](std::uint64_t at, std::span<const std::byte> run) { persist(at, run); });
  overlay_.flush_write({begin, round_up(range.end()) - begin}, id,
                       [&](std::uint64_t at, std::span<const std::byte> s) { out.add(at, s); });
  out.finish();
  return std::exchange(persist_error_, 0);
}

std::uint64_t PowerFile::cut(const Fates& fates) {
  const std::lock_guard lock(mutex_);
  std::uint64_t kept = 0;
  overlay_.cut(fates, [&](std::uint64_t at, std::span<const std::byte> sector) {
    persist(at, sector);
    ++kept;
  });
  return kept;
}

int PowerFile::stat(struct ::stat* st) {
  const std::lock_guard lock(mutex_);
  if (::fstat(fd_, st) != 0) return -errno;
  st->st_size = static_cast<off_t>(size_);
  return 0;
}

std::uint64_t PowerFile::size() {
  const std::lock_guard lock(mutex_);
  return size_;
}

bool PowerFile::clean() {
  const std::lock_guard lock(mutex_);
  return overlay_.empty();
}

std::size_t PowerFile::unflushed_pages() {
  const std::lock_guard lock(mutex_);
  return overlay_.page_versions();
}

}  // namespace mariner::powerdisk
