#include "uvfs/program/host_tree.h"

#include <ext2fs/ext2_fs.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "uvfs/object_attributes.h"

namespace mariner::uvfs {
namespace {

constexpr int kTreeFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::uint32_t kMinorBits = 20;
constexpr std::size_t kNotesMax = 1000;

std::string reason(int error) { return std::generic_category().message(error); }

std::array<timespec, 2> times_of(const ObjectState& object) {
  return {
      timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      timespec{.tv_sec = object.modified.seconds, .tv_nsec = object.modified.ns % 1'000'000'000}};
}

// With the disk full, or gone, there is no use in going on.
bool is_fatal(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EROFS;
}

// errno; 0: all is written.
int write_all(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

Result<HostTree::Done> HostTree::write() {
  made_.assign(tree_.entries.size(), false);
  done_.notes = tree_.skipped;
  if (done_.notes.size() > kNotesMax) {
    done_.notes.resize(kNotesMax);
    done_.notes.emplace_back("... and more");
  }
  for (std::size_t i = 0; i < tree_.entries.size(); ++i) {
    // (What is in a directory that could not be made is not made either.)
    if (i > 0 && !made_[tree_.entries[i].parent]) continue;
    if (const auto made = make(i); !made) return made.error();
    if (options_.progress) options_.progress(i + 1, done_.bytes);
  }
  if (const auto finished = finish_directories(); !finished) return finished.error();
  return std::move(done_);
}

const std::string& HostTree::name_of(std::size_t entry) const {
  return entry == 0 ? place_.temporary_name() : tree_.entries[entry].name;
}

std::string HostTree::shown(std::size_t entry) const {
  const std::string path = tree_.path_of(entry);
  return path.empty() ? place_.path() : place_.path() + "/" + path;
}

void HostTree::note(std::size_t entry, std::string_view what) {
  if (done_.notes.size() == kNotesMax) done_.notes.emplace_back("... and more");
  if (done_.notes.size() > kNotesMax) return;
  done_.notes.push_back(fmt::format("{}: {}", shown(entry), what));
}

void HostTree::not_made(std::size_t entry, int error) {
  done_.failed = true;
  note(entry, fmt::format("was not made: {}", reason(error)));
}

Result<void> HostTree::leave_out(std::size_t entry, const Error& why) {
  if (entry == 0 || !is_of_one_object(why)) {
    return Error{why.code, fmt::format("{}: {}", shown(entry), why.message)};
  }
  done_.failed = true;
  note(entry, "was not made: " + why.message);
  return {};
}

Result<HostFd> HostTree::walk_to(std::size_t directory) const {
  std::vector<std::size_t> way{directory};
  while (way.back() != 0) way.push_back(tree_.entries[way.back()].parent);
  HostFd at(openat(place_.folder(), name_of(0).c_str(), kTreeFolderFlags));
  way.pop_back();
  for (; !way.empty() && at.fd() >= 0; way.pop_back()) {
    at = HostFd(openat(at.fd(), name_of(way.back()).c_str(), kTreeFolderFlags));
  }
  if (at.fd() >= 0) return at;
  return errno_error(errno, shown(directory) + " cannot be opened again");
}

Result<int> HostTree::folder_of(std::size_t entry) {
  if (entry == 0) return place_.folder();
  const std::size_t parent = tree_.entries[entry].parent;
  if (folder_.fd() < 0 || folder_entry_ != parent) {
    auto opened = walk_to(parent);
    if (!opened) return opened.error();
    folder_ = std::move(*opened);
    folder_entry_ = parent;
  }
  return folder_.fd();
}

Result<void> HostTree::make(std::size_t entry) {
  const std::uint16_t mode = tree_.entries[entry].object.mode;
  if (LINUX_S_ISDIR(mode)) return make_directory(entry);
  const auto linked = make_hard_link(entry);
  if (!linked) return linked.error();
  if (*linked) return {};
  if (LINUX_S_ISREG(mode)) return make_file(entry);
  if (LINUX_S_ISLNK(mode)) return make_link(entry);
  return make_other(entry);
}

Result<bool> HostTree::make_hard_link(std::size_t entry) {
  const Entry& one = tree_.entries[entry];
  const auto first = by_inode_.find(one.inode);
  if (first == by_inode_.end()) {
    if (one.object.links > 1) by_inode_.emplace(one.inode, entry);
    return false;
  }
  if (!made_[first->second]) return false;
  auto from = first->second == 0 ? Result<HostFd>(HostFd(dup(place_.folder())))
                                 : walk_to(tree_.entries[first->second].parent);
  if (!from) return from.error();
  const auto folder = folder_of(entry);
  if (!folder) return folder.error();
  if (linkat(from->fd(), name_of(first->second).c_str(), *folder, name_of(entry).c_str(), 0) != 0) {
    if (is_fatal(errno)) return errno_error(errno, shown(entry));
    note(entry, fmt::format("is a file of its own, not a hard link: {}", reason(errno)));
    return false;
  }
  made_[entry] = true;
  return true;
}

Result<void> HostTree::make_directory(std::size_t entry) {
  const auto folder = folder_of(entry);
  if (!folder) return folder.error();
  // Nobody else gets in until it is finished.
  if (mkdirat(*folder, name_of(entry).c_str(), 0700) != 0) {
    if (entry == 0 || is_fatal(errno)) return errno_error(errno, shown(entry));
    not_made(entry, errno);
    return {};
  }
  made_[entry] = true;
  ++done_.directories;
  return {};
}

Result<FileContents> HostTree::contents_of(std::size_t entry) {
  const ObjectNumber number = tree_.entries[entry].inode;
  return options_.contents ? options_.contents(number) : history_.contents(number, options_.at);
}

Result<void> HostTree::make_file(std::size_t entry) {
  auto contents = contents_of(entry);
  if (!contents) return leave_out(entry, contents.error());
  const auto folder = folder_of(entry);
  if (!folder) return folder.error();
  HostFd file(openat(*folder, name_of(entry).c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd() < 0) {
    if (entry == 0 || is_fatal(errno)) return errno_error(errno, shown(entry));
    not_made(entry, errno);
    return {};
  }
  made_[entry] = true;
  const auto filled = fill(entry, *contents, file.fd());
  if (!filled) return filled.error();
  if (!*filled) {
    // (Half of one would be taken for all of it.)
    made_[entry] = false;
    if (unlinkat(*folder, name_of(entry).c_str(), 0) == 0) return {};
    return errno_error(errno, shown(entry) + " cannot be removed");
  }
  if (const auto settled = settle(entry, file.fd()); !settled) return settled;
  if (entry == 0 && fsync(file.fd()) != 0) return errno_error(errno, shown(entry));
  if (const int error = file.close(); error != 0) return errno_error(error, shown(entry));
  ++done_.files;
  return {};
}

// Holes stay holes.
Result<bool> HostTree::fill(std::size_t entry, FileContents& contents, int fd) {
  const std::uint64_t before = done_.bytes;
  int failed = 0;  // errno of this host
  const auto written = contents.for_each_piece(
      [&](std::uint64_t at, std::span<const std::byte> bytes) -> Result<void> {
        done_.bytes += bytes.size();
        if (options_.progress) options_.progress(entry, done_.bytes);
        failed = write_all(fd, at, bytes);
        return failed == 0 ? Result<void>{} : errno_error(failed, "cannot be written");
      });
  if (written && ftruncate(fd, static_cast<off_t>(contents.size())) != 0) failed = errno;
  if (written && failed == 0) {
    if (contents.is_whole()) return true;
    done_.failed = true;
    note(entry, "what says where its blocks are is damaged; what was not found is zeros");
    return true;
  }
  done_.bytes = before;
  if (failed == 0) {
    const auto left_out = leave_out(entry, written.error());
    return left_out ? Result<bool>(false) : left_out.error();
  }
  // (It may be larger than files can be here.)
  if (entry == 0 || is_fatal(failed)) return errno_error(failed, shown(entry));
  not_made(entry, failed);
  return false;
}

Result<void> HostTree::make_link(std::size_t entry) {
  auto contents = contents_of(entry);
  const auto target = contents ? contents->link_target() : contents.error();
  if (!target) return leave_out(entry, target.error());
  const auto folder = folder_of(entry);
  if (!folder) return folder.error();
  if (symlinkat(target->c_str(), *folder, name_of(entry).c_str()) != 0) {
    if (entry == 0 || is_fatal(errno)) return errno_error(errno, shown(entry));
    not_made(entry, errno);
    return {};
  }
  made_[entry] = true;
  ++done_.links;
  settle_by_name(entry, *folder);
  return {};
}

Result<void> HostTree::make_other(std::size_t entry) {
  const ObjectState& object = tree_.entries[entry].object;
  const bool socket = LINUX_S_ISSOCK(object.mode);
  if (socket || !options_.privileged) {
    const char* const why =
        socket ? "sockets are made by who listens on them" : "only root makes devices and fifos";
    if (entry == 0) return Error{ErrorCode::kInvalidArgument, fmt::format("not restored: {}", why)};
    note(entry, fmt::format("was not made: {}", why));
    return {};
  }
  const auto folder = folder_of(entry);
  if (!folder) return folder.error();
  const dev_t device =
      makedev(object.device >> kMinorBits, object.device & ((1u << kMinorBits) - 1));
  // (Nobody's until it is finished.)
  if (mknodat(*folder, name_of(entry).c_str(), object.mode & LINUX_S_IFMT, device) != 0) {
    if (entry == 0 || is_fatal(errno)) return errno_error(errno, shown(entry));
    note(entry, fmt::format("was not made: {}", reason(errno)));
    return {};
  }
  made_[entry] = true;
  ++done_.others;
  settle_by_name(entry, *folder);
  return {};
}

Result<void> HostTree::finish_directories() {
  folder_ = HostFd();
  // Those within first: whose mode may be such that nobody gets in.
  for (std::size_t i = tree_.entries.size(); i-- > 0;) {
    if (!made_[i] || !LINUX_S_ISDIR(tree_.entries[i].object.mode)) continue;
    const auto directory = walk_to(i);
    if (!directory) return directory.error();
    if (const auto settled = settle(i, directory->fd()); !settled) return settled;
  }
  return {};
}

Result<void> HostTree::set_attributes(std::size_t entry, int fd) {
  const Entry& one = tree_.entries[entry];
  const auto attributes = history_.files->attributes(one.inode, options_.at);
  if (!attributes) {
    if (!is_of_one_object(attributes.error())) return attributes.error();
    done_.failed = true;
    note(entry, "its attributes were not read: " + attributes.error().message);
    return {};
  }
  for (const std::string& each : attributes->skipped) {
    note(entry, fmt::format("attribute {} was not read: its value is elsewhere, or damaged", each));
  }
  for (const ObjectAttributes::One& each : attributes->all) {
    if (fsetxattr(fd, each.name.c_str(), each.value.data(), each.value.size(), 0) == 0) continue;
    note(entry, fmt::format("attribute {} was not set: {}", each.name, reason(errno)));
  }
  return {};
}

Result<void> HostTree::settle(std::size_t entry, int fd) {
  const ObjectState& object = tree_.entries[entry].object;
  std::uint16_t mode = object.mode & 07777;
  if (options_.privileged) {
    if (fchown(fd, object.user, object.group) != 0) {
      note(entry, fmt::format("has another owner than {}:{}: {}", object.user, object.group,
                              reason(errno)));
      mode &= 01777;
    }
  } else {
    // What ran as its owner would run as who restores it.
    if ((mode & 06000) != 0)
      note(entry, "is not set-user-ID or set-group-ID: only root restores it");
    mode &= 01777;
  }
  if (const auto set = set_attributes(entry, fd); !set) return set;
  if (fchmod(fd, mode) != 0) note(entry, fmt::format("has another mode: {}", reason(errno)));
  if (futimens(fd, times_of(object).data()) != 0) {
    note(entry, fmt::format("has another time: {}", reason(errno)));
  }
  return {};
}

void HostTree::settle_by_name(std::size_t entry, int folder) {
  const ObjectState& object = tree_.entries[entry].object;
  const char* const name = name_of(entry).c_str();
  if (options_.privileged &&
      fchownat(folder, name, object.user, object.group, AT_SYMLINK_NOFOLLOW) != 0) {
    note(entry, fmt::format("has another owner: {}", reason(errno)));
  }
  if (!LINUX_S_ISLNK(object.mode)) {
    const HostFd node(openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const std::string path = fmt::format("/proc/self/fd/{}", node.fd());
    if (node.fd() < 0 || chmod(path.c_str(), object.mode & 07777) != 0) {
      note(entry, fmt::format("has another mode: {}", reason(errno)));
    }
  }
  if (utimensat(folder, name, times_of(object).data(), AT_SYMLINK_NOFOLLOW) != 0) {
    note(entry, fmt::format("has another time: {}", reason(errno)));
  }
}

}  // namespace mariner::uvfs
