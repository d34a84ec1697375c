#include "uvfs/program/host_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "proto/check.h"

namespace mariner::uvfs {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error exists(const std::string& path) {
  return {ErrorCode::kAlreadyExists,
          fmt::format("{} exists: name another place, or replace it with --force", path)};
}

Error not_replaced(const std::string& path) {
  return {ErrorCode::kAlreadyExists,
          fmt::format("{} is a directory, or is to become one in the place of a file: it is "
                      "not replaced; move it away first",
                      path)};
}

bool is_there(int folder, const std::string& name) {
  struct stat status {};
  return fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::string temporary_name() {
  std::uint64_t number = 0;
  CHECK(getrandom(&number, sizeof number, 0) == sizeof number);
  return fmt::format(".uvfs-{:016x}", number);
}

// Of what is in a directory.
std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(folder), closedir);
  if (directory == nullptr) {
    ::close(folder);
    return names;
  }
  while (const dirent* const entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

bool has_something(int folder, const std::string& name) {
  const int fd = openat(folder, name.c_str(), kFolderFlags);
  return fd >= 0 && !names_in(fd).empty();
}

}  // namespace

HostFd::~HostFd() {
  if (fd_ >= 0) ::close(fd_);
}

HostFd& HostFd::operator=(HostFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

int HostFd::close() { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

HostPlace::HostPlace(std::string path, HostFd folder, std::string name, bool replace)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      name_(std::move(name)),
      temporary_(uvfs::temporary_name()),
      replace_(replace) {}

HostPlace::HostPlace(HostPlace&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      replace_(other.replace_),
      done_(std::exchange(other.done_, true)) {}

HostPlace::~HostPlace() {
  if (!done_) remove_tree(folder_.fd(), temporary_);
}

Result<HostPlace> HostPlace::open(const std::string& path, bool replace) {
  std::string whole = path;
  while (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
  const auto slash = whole.rfind('/');
  const std::string name = slash == std::string::npos ? whole : whole.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no place to restore to: expected the name that it is to "
                             "have, in a directory that exists",
                             path)};
  }
  const std::string above = slash == std::string::npos ? "." : whole.substr(0, slash + 1);
  HostFd folder(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0) return errno_error(errno, above + " cannot be opened");
  if (!replace && is_there(folder.fd(), name)) return exists(whole);
  // (It would not be known before all is written.)
  if (replace && has_something(folder.fd(), name)) return not_replaced(whole);
  return HostPlace(whole, std::move(folder), name, replace);
}

Result<void> HostPlace::check(bool directory) const {
  struct stat status {};
  if (fstatat(folder(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!replace_) return exists(path_);
  return S_ISDIR(status.st_mode) == directory ? Result<void>{} : not_replaced(path_);
}

Result<void> HostPlace::take_place() {
  const auto rename = [&](unsigned flags) {
    return renameat2(folder(), temporary_.c_str(), folder(), name_.c_str(), flags) == 0;
  };
  bool renamed = replace_ ? rename(0) : rename(RENAME_NOREPLACE);
  // (Not every file system knows how not to replace.)
  if (!renamed && !replace_ && errno == EINVAL) {
    if (is_there(folder(), name_)) return exists(path_);
    renamed = rename(0);
  }
  done_ = renamed;
  if (renamed) return {};
  if (!replace_ && errno == EEXIST) return exists(path_);
  if (errno == ENOTEMPTY || errno == EEXIST || errno == EISDIR || errno == ENOTDIR) {
    return not_replaced(path_);
  }
  return errno_error(errno, path_ + " cannot be put in its place");
}

void remove_tree(int folder, const std::string& name) {
  // (No recursion, and few descriptors: a foreign tree may be deeper than there are of both.)
  if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return;
  struct Level {
    std::string name;
    std::vector<std::string> left;  // directories in it that have something in them
  };
  std::vector<Level> way;
  const auto open_last = [&] {
    HostFd at(dup(folder));
    for (const Level& each : way) at = HostFd(openat(at.fd(), each.name.c_str(), kFolderFlags));
    return at;
  };
  // All but those; false: it cannot be done.
  const auto enter = [&](std::string below) {
    way.push_back({std::move(below), {}});
    const HostFd at = open_last();
    if (at.fd() < 0) return false;
    (void)fchmod(at.fd(), 0700);
    for (std::string& each : names_in(dup(at.fd()))) {
      if (unlinkat(at.fd(), each.c_str(), 0) == 0) continue;
      if (errno != EISDIR && errno != EPERM) return false;
      if (unlinkat(at.fd(), each.c_str(), AT_REMOVEDIR) != 0) {
        way.back().left.push_back(std::move(each));
      }
    }
    return true;
  };
  if (!enter(name)) return;
  while (!way.empty()) {
    std::vector<std::string>& left = way.back().left;
    if (!left.empty()) {
      std::string below = std::move(left.back());
      left.pop_back();
      if (!enter(std::move(below))) return;
      continue;
    }
    const std::string emptied = std::move(way.back().name);
    way.pop_back();
    if (unlinkat(open_last().fd(), emptied.c_str(), AT_REMOVEDIR) != 0) return;
  }
}

}  // namespace mariner::uvfs
