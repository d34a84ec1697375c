#include "server/client/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "proto/check.h"

namespace mariner::client {
namespace {

// Written back as it comes: else all of it would be waited for at the end.
constexpr std::uint64_t kWritebackBytes = 8u << 20;
constexpr mode_t kMode = 0600;  // what is on a disk is not for everybody

Error exists(const std::string& path, const char* what) {
  return {ErrorCode::kAlreadyExists,
          fmt::format("{} {}: name another place, or overwrite it with --force", path, what)};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string name_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string temporary_name(const std::string& name) {
  std::uint64_t number = 0;
  CHECK(::getrandom(&number, sizeof number, 0) == sizeof number);
  return fmt::format(".{}.partial-{:016x}", name, number);
}

// errno, or 0.
int write_all(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

int zero_range(int fd, ByteRange range) {
  const auto allocate = [&](int mode) {
    return ::fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.offset),
                       static_cast<off_t>(range.length)) == 0;
  };
  if (range.length == 0 || allocate(FALLOC_FL_PUNCH_HOLE)) return 0;
  // (A device that cannot discard may still know how to be zeroed.)
  if (errno == EOPNOTSUPP && allocate(FALLOC_FL_ZERO_RANGE)) return 0;
  if (errno != EOPNOTSUPP) return errno;
  const std::vector<std::byte> zeros(1u << 20);
  for (std::uint64_t at = range.offset; at < range.end(); at += zeros.size()) {
    const auto part = std::span(zeros).first(std::min(zeros.size(), range.end() - at));
    if (const int error = write_all(fd, at, part); error != 0) return error;
  }
  return 0;
}

Result<OutputFile::Kind> OutputFile::look(const std::string& path, bool force) {
  const std::string name = name_of(path);
  if (name.empty() || name == "." || name == "..") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\": expected the name of a file in a directory that exists, or "
                             "a block device",
                             path)};
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return Kind::kNew;
    return errno_error(errno, path);
  }
  const bool is_device = S_ISBLK(status.st_mode);
  if (!is_device && !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, path + " is neither a file nor a block device"};
  }
  if (!force) return exists(path, is_device ? "is a block device" : "exists");
  return is_device ? Kind::kDevice : Kind::kReplaced;
}

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path, bool force) {
  const Result<Kind> kind = look(path, force);
  if (!kind) return kind.error();
  std::unique_ptr<OutputFile> file(new OutputFile(path, force));
  const Result<void> opened = *kind == Kind::kDevice ? file->open_device() : file->open_file();
  if (!opened) return opened.error();
  return file;
}

OutputFile::OutputFile(std::string path, bool force)
    : path_(std::move(path)), force_(force), name_(name_of(path_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
  if (fd_ >= 0) ::close(fd_);
  if (folder_ >= 0) ::close(folder_);
}

Error OutputFile::failed(const char* what) const {
  return errno_error(errno, fmt::format("{}: {}", path_, what));
}

// Exclusively: one that is mounted, or part of something else, is refused.
Result<void> OutputFile::open_device() {
  is_device_ = true;
  fd_ = ::open(path_.c_str(), O_RDWR | O_EXCL | O_CLOEXEC);
  if (fd_ < 0 && errno == EBUSY) {
    return Error{ErrorCode::kBusy, path_ + " is in use: unmount it first, whatever it is part of"};
  }
  if (fd_ < 0) return failed("open");
  if (::ioctl(fd_, BLKGETSIZE64, &device_bytes_) != 0) return failed("size");
  return {};
}

Result<void> OutputFile::open_file() {
  const std::string folder = folder_of(path_);
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) return errno_error(errno, folder + " cannot be opened");
  fd_ = ::openat(folder_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    const std::string temporary = temporary_name(name_);
    fd_ = ::openat(folder_, temporary.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kMode);
    if (fd_ >= 0) temporary_ = temporary;
  }
  if (fd_ < 0) return failed("create");
  return {};
}

Result<void> OutputFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (const int error = write_all(fd_, offset, bytes); error != 0) {
    errno = error;
    return failed("write");
  }
  begin_writeback({offset, bytes.size()});
  return {};
}

// Its errors are those of commit().
void OutputFile::begin_writeback(ByteRange written) {
  if (written.offset != unwritten_.end()) unwritten_ = {written.offset, 0};
  unwritten_.length += written.length;
  if (unwritten_.length < kWritebackBytes) return;
  static_cast<void>(::sync_file_range(fd_, static_cast<off64_t>(unwritten_.offset),
                                      static_cast<off64_t>(unwritten_.length),
                                      SYNC_FILE_RANGE_WRITE));
  unwritten_ = {unwritten_.end(), 0};
}

Result<void> OutputFile::clear(ByteRange range) {
  if (!is_device_) return {};  // it is a hole
  if (const int error = zero_range(fd_, range); error != 0) {
    errno = error;
    return failed("zero");
  }
  return {};
}

Result<void> OutputFile::keep_owner_and_mode() {
  struct stat status {};
  if (::fstatat(folder_, name_.c_str(), &status, 0) != 0) return failed("look at it");
  if (::fchown(fd_, status.st_uid, status.st_gid) != 0) return failed("set its owner");
  if (::fchmod(fd_, status.st_mode & 07777) != 0) return failed("set its mode");
  return {};
}

Result<void> OutputFile::set_length(std::uint64_t bytes) {
  if (is_device_ || ::ftruncate(fd_, static_cast<off_t>(bytes)) == 0) return {};
  return failed("set its length");
}

Result<void> OutputFile::commit() {
  if (::fsync(fd_) != 0) return failed("make it durable");
  return is_device_ ? Result<void>{} : take_name();
}

Result<void> OutputFile::take_name() {
  if (temporary_.empty()) {
    const std::string temporary = temporary_name(name_);
    const std::string itself = fmt::format("/proc/self/fd/{}", fd_);
    if (::linkat(AT_FDCWD, itself.c_str(), folder_, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return failed("give it a name");
    }
    temporary_ = temporary;
  }
  const auto rename = [&](unsigned flags) {
    return ::renameat2(folder_, temporary_.c_str(), folder_, name_.c_str(), flags) == 0;
  };
  bool renamed = rename(force_ ? 0 : RENAME_NOREPLACE);
  // (Not every file system knows how not to replace.)
  if (!renamed && !force_ && errno == EINVAL) {
    if (::faccessat(folder_, name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      return exists(path_, "exists by now");
    }
    renamed = rename(0);
  }
  if (!renamed && !force_ && errno == EEXIST) return exists(path_, "exists by now");
  if (!renamed) return failed("give it its name");
  temporary_.clear();
  if (::fsync(folder_) != 0) return failed("make its name durable");
  return {};
}

}  // namespace mariner::client
