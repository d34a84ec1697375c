#include "logging/timed_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "proto/check.h"

namespace mariner::logging {

namespace {

constexpr std::uint32_t kFileSectorBytes = 4096;

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

Result<void> check_kind(const std::string& path, mode_t mode, TimedDevice::Access access) {
  if (!S_ISBLK(mode) && !S_ISREG(mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 path + ": expected a block device or a regular file, found " + kind_of(mode)};
  }
  if (S_ISREG(mode) && access == TimedDevice::Access::kRewrite) {
    return Error{ErrorCode::kInvalidArgument,
                 path +
                     ": only a block device is worth writing to, and this is a file; try "
                     "without --write"};
  }
  return {};
}

}  // namespace

void TimedDevice::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<std::unique_ptr<TimedDevice>> TimedDevice::open(const std::string& path, Access access) {
  std::unique_ptr<TimedDevice> device(new TimedDevice(path, access));
  if (Result<void> opened = device->open_it(); !opened) return opened.error();
  if (Result<void> looked = device->look_at(); !looked) return looked.error();
  device->sector_.reset(static_cast<std::byte*>(std::aligned_alloc(
      std::max(device->sector_bytes_, 4096u), std::max(device->sector_bytes_, 4096u))));
  CHECK_MSG(device->sector_ != nullptr, "out of memory");
  return device;
}

TimedDevice::~TimedDevice() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> TimedDevice::open_it() {
  // Before it is opened: merely opening a tape or a pipe does something.
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, path_ + ": does not exist"};
    return errno_error(errno, path_ + ": stat");
  }
  if (Result<void> kind = check_kind(path_, status.st_mode, access_); !kind) return kind;
  int flags = O_DIRECT | O_CLOEXEC | O_NONBLOCK;
  flags |= access_ == Access::kRewrite ? O_RDWR | O_DSYNC : O_RDONLY;
  if (access_ == Access::kRewrite && S_ISBLK(status.st_mode)) flags |= O_EXCL;
  fd_ = ::open(path_.c_str(), flags);
  if (fd_ < 0 && errno == EBUSY) {
    return Error{ErrorCode::kBusy, path_ + ": is in use; unmount it, or stop what holds it"};
  }
  if (fd_ < 0 && errno == EINVAL) {
    return Error{ErrorCode::kIo, path_ +
                                     ": its file system cannot read past the page cache "
                                     "(O_DIRECT); name a file or device elsewhere"};
  }
  if (fd_ < 0) return errno_error(errno, path_ + ": open");
  if (::flock(fd_, (access_ == Access::kRewrite ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    return Error{ErrorCode::kBusy,
                 path_ + ": another process has it open (is a marinerd running?)"};
  }
  return {};
}

Result<void> TimedDevice::look_at() {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return errno_error(errno, path_ + ": stat");
  if (Result<void> kind = check_kind(path_, status.st_mode, access_); !kind) return kind;
  is_file_ = S_ISREG(status.st_mode);
  std::uint64_t bytes = 0;
  if (is_file_) {
    bytes = static_cast<std::uint64_t>(status.st_size);
    sector_bytes_ = kFileSectorBytes;
  } else {
    int logical = 0;
    unsigned physical = 0;
    if (::ioctl(fd_, BLKGETSIZE64, &bytes) != 0) return errno_error(errno, path_ + ": size");
    if (::ioctl(fd_, BLKSSZGET, &logical) != 0 || ::ioctl(fd_, BLKPBSZGET, &physical) != 0) {
      return errno_error(errno, path_ + ": sector size");
    }
    sector_bytes_ = std::max(static_cast<unsigned>(logical), physical);
    if (sector_bytes_ != 512 && sector_bytes_ != 4096) {
      return Error{ErrorCode::kInvalidArgument,
                   path_ + ": expected sectors of 512 or 4096 bytes, found " +
                       std::to_string(sector_bytes_)};
    }
  }
  sectors_ = bytes / sector_bytes_;
  if (sectors_ == 0) {
    return Error{ErrorCode::kInvalidArgument, path_ + ": expected at least one sector of " +
                                                  std::to_string(sector_bytes_) + " bytes, found " +
                                                  std::to_string(bytes) + " bytes"};
  }
  return {};
}

Result<TimedDevice::Time> TimedDevice::access(std::uint64_t sector) {
  CHECK(sector < sectors_);
  const auto offset = static_cast<off_t>(sector * sector_bytes_);
  const auto place = [&] { return path_ + ": sector " + std::to_string(sector); };
  ssize_t moved = ::pread(fd_, sector_.get(), sector_bytes_, offset);
  if (moved < 0) return errno_error(errno, place() + ": read");
  if (access_ == Access::kRewrite && moved == static_cast<ssize_t>(sector_bytes_)) {
    moved = ::pwrite(fd_, sector_.get(), sector_bytes_, offset);
    if (moved < 0) return errno_error(errno, place() + ": write");
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (moved != static_cast<ssize_t>(sector_bytes_)) {
    return Error{ErrorCode::kIo, place() + ": moved " + std::to_string(moved) + " of " +
                                     std::to_string(sector_bytes_) + " bytes"};
  }
  return std::chrono::duration_cast<Time>(now);
}

}  // namespace mariner::logging
