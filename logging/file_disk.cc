#include "logging/file_disk.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <utility>

#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

std::vector<iovec> to_iovecs(std::span<const ConstBytes> parts) {
  std::vector<iovec> vectors;
  vectors.reserve(parts.size());
  for (const ConstBytes& part : parts) {
    vectors.push_back({const_cast<std::byte*>(part.data()), part.size()});
  }
  return vectors;
}

std::uint64_t total_bytes(std::span<const ConstBytes> parts) {
  std::uint64_t total = 0;
  for (const ConstBytes& part : parts) total += part.size();
  return total;
}

Error short_transfer(const std::string& path, const char* what, std::uint64_t offset,
                     std::int64_t expected, std::int64_t found) {
  return Error{ErrorCode::kIo, path + ": " + what + " at byte " + std::to_string(offset) +
                                   " moved " + std::to_string(found) + " of " +
                                   std::to_string(expected) + " bytes"};
}

}  // namespace

Result<void> sync_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::absolute(path).parent_path().string();
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, parent + ": open");
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (rc != 0) return errno_error(error, parent + ": fsync");
  return {};
}

Result<void> FileDisk::create(const std::string& path, Caching caching, std::uint64_t size_bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) return Error{ErrorCode::kAlreadyExists, path + ": exists already"};
    return errno_error(errno, path + ": create");
  }
  int rc = caching == Caching::kDirect ? ::fallocate(fd, 0, 0, static_cast<off_t>(size_bytes))
                                       : ::ftruncate(fd, static_cast<off_t>(size_bytes));
  if (rc != 0 && caching == Caching::kDirect && errno == EOPNOTSUPP) {
    // A file system without preallocation: the initialiser's writing allocates instead.
    rc = ::ftruncate(fd, static_cast<off_t>(size_bytes));
  }
  if (rc == 0) rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (rc != 0) {
    ::unlink(path.c_str());
    return errno_error(error, path + ": cannot reserve " + std::to_string(size_bytes) + " bytes");
  }
  return sync_directory_of(path);
}

Result<std::unique_ptr<FileDisk>> FileDisk::open(const std::string& path, Caching caching,
                                                 IoRing* ring) {
  const int flags = O_RDWR | O_CLOEXEC | (caching == Caching::kDirect ? O_DIRECT : 0);
  const int fd = ::open(path.c_str(), flags);
  if (fd < 0) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, path + ": does not exist"};
    return errno_error(errno, path + ": open");
  }
  std::unique_ptr<FileDisk> disk(new FileDisk(path, fd, ring));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kBusy, path + ": another process has it open (is a marinerd running?)"};
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error(errno, path + ": stat");
  if (S_ISBLK(status.st_mode)) {
    std::uint64_t size = 0;
    if (::ioctl(fd, BLKGETSIZE64, &size) != 0) return errno_error(errno, path + ": size");
    disk->size_bytes_ = size;
  } else if (S_ISREG(status.st_mode)) {
    disk->size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  } else {
    return Error{ErrorCode::kInvalidArgument, path + ": neither a file nor a block device"};
  }
  // The log's blocks are 4 KiB, which every device's own alignment divides.
  disk->alignment_ = caching == Caching::kDirect ? kBlockBytes : 1;
  return disk;
}

FileDisk::~FileDisk() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint64_t FileDisk::allocated_bytes() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

Result<void> FileDisk::resize(std::uint64_t size_bytes) {
  if (::ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0 || ::fsync(fd_) != 0) {
    return errno_error(errno, path_ + ": resize");
  }
  size_bytes_ = size_bytes;
  return {};
}

Result<void> FileDisk::read(std::uint64_t offset, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t n =
        ::pread(fd_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return errno_error(errno, path_ + ": read at byte " + std::to_string(offset + done));
    }
    if (n == 0) {
      return short_transfer(path_, "read", offset, static_cast<std::int64_t>(to.size()),
                            static_cast<std::int64_t>(done));
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> FileDisk::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                             Durability durability) {
  std::vector<iovec> vectors = to_iovecs(parts);
  std::size_t at = 0;
  const int flags = durability == Durability::kDurable ? RWF_DSYNC : 0;
  while (at < vectors.size()) {
    const int count = static_cast<int>(std::min<std::size_t>(vectors.size() - at, IOV_MAX));
    const ssize_t n =
        ::pwritev2(fd_, vectors.data() + at, count, static_cast<off_t>(offset), flags);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return errno_error(n < 0 ? errno : EIO, path_ + ": write at byte " + std::to_string(offset));
    }
    offset += static_cast<std::uint64_t>(n);
    auto left = static_cast<std::size_t>(n);
    while (at < vectors.size() && left >= vectors[at].iov_len) left -= vectors[at++].iov_len;
    if (left > 0) {
      vectors[at].iov_base = static_cast<char*>(vectors[at].iov_base) + left;
      vectors[at].iov_len -= left;
    }
  }
  return {};
}

Result<void> FileDisk::flush() {
  if (::fdatasync(fd_) != 0) return errno_error(errno, path_ + ": flush");
  return {};
}

// Its errors are kept for the flush. kDirect has nothing to write back.
void FileDisk::start_writeback(ByteRange range) {
  static_cast<void>(::sync_file_range(fd_, static_cast<off64_t>(range.offset),
                                      static_cast<off64_t>(range.length), SYNC_FILE_RANGE_WRITE));
}

Result<void> FileDisk::discard(ByteRange range) {
  if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.offset),
                  static_cast<off_t>(range.length)) == 0) {
    return {};
  }
  if (errno != EOPNOTSUPP) return errno_error(errno, path_ + ": discard");
  // No holes here: write zeros.
  static const Payload zeros = Payload::zeroed(1u << 20);  // aligned as kDirect demands
  while (range.length > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(range.length, zeros.size());
    const ConstBytes part(zeros.data(), piece);
    if (Result<void> written = write(range.offset, {&part, 1}, Durability::kVolatile); !written) {
      return written;
    }
    range.offset += piece;
    range.length -= piece;
  }
  return {};
}

bool FileDisk::try_read(std::uint64_t offset, std::span<std::byte> to) {
  iovec vector{to.data(), to.size()};
  return ::preadv2(fd_, &vector, 1, static_cast<off_t>(offset), RWF_NOWAIT) ==
         static_cast<ssize_t>(to.size());
}

void FileDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  CHECK(ring_ != nullptr);
  const auto expected = static_cast<std::int64_t>(to.size());
  ring_->read(fd_, {{to.data(), to.size()}}, offset, 0,
              [this, offset, to, expected, done = std::move(done)](std::int64_t n) mutable {
                if (n == expected) return done(Result<void>{});
                if (n < 0 && n != -EINTR && n != -EAGAIN) {
                  return done(errno_error(static_cast<int>(-n),
                                          path_ + ": read at byte " + std::to_string(offset)));
                }
                if (n == 0) return done(short_transfer(path_, "read", offset, expected, 0));
                const auto moved = static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
                async_read(offset + moved, to.subspan(moved), std::move(done));
              });
}

void FileDisk::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) {
  CHECK(ring_ != nullptr);
  CHECK(parts.size() <= IOV_MAX);
  const auto expected = static_cast<std::int64_t>(total_bytes(parts));
  const int flags = durability == Durability::kDurable ? RWF_DSYNC : 0;
  ring_->write(fd_, to_iovecs(parts), offset, flags,
               [this, offset, expected, done = std::move(done)](std::int64_t n) mutable {
                 if (n == expected) return done(Result<void>{});
                 if (n < 0) {
                   return done(errno_error(static_cast<int>(-n),
                                           path_ + ": write at byte " + std::to_string(offset)));
                 }
                 done(short_transfer(path_, "write", offset, expected, n));
               });
}

}  // namespace mariner::logging
