// mariner-powerdisk: mounts a folder as a disk that loses power (power_disk.h says what that
// means).
//
//   mariner-powerdisk [--flush-delay-us N] BACKING MOUNTPOINT
//
// Stays in the foreground; ends when unmounted or on SIGTERM. The file MOUNTPOINT/.power, which no
// listing shows, controls it: "cut SEED", "cut nothing-kept" or "lie NAME" written to it; reading
// it gives counters.
//
// All files are opened with direct I/O, so that the kernel caches nothing and every write comes
// here with its own flags. Observed on Linux 6.18: RWF_DSYNC of a buffered, O_DIRECT or io_uring
// write arrives as O_DSYNC in the flags of the FUSE write, and no FUSE fsync follows it.
#define FUSE_USE_VERSION 312

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "tests/powerdisk/power_disk.h"

namespace mariner::powerdisk {
namespace {

constexpr std::string_view kControlPath = "/.power";
constexpr unsigned kRequestBytesMax = 1u << 20;
constexpr unsigned kThreadsMax = 16;

PowerDisk& disk() { return *static_cast<PowerDisk*>(fuse_get_context()->private_data); }

const char* relative(const char* path) { return path[1] == '\0' ? "." : path + 1; }

bool is_control(const char* path) { return path != nullptr && kControlPath == path; }

// An open file of the mount: `fuse_file_info::fh` points to one. The control file has none.
struct Handle {
  std::shared_ptr<PowerFile> file;
};

Handle* handle_of(const fuse_file_info* info) {
  return info == nullptr ? nullptr : reinterpret_cast<Handle*>(info->fh);
}

// Runs a system call on the backing folder while the power is on.
template <typename Call>
int backing(Call call) {
  const auto running = disk().enter();
  if (!running) return -EIO;
  return call(disk().root_fd()) < 0 ? -errno : 0;
}

void* on_init(fuse_conn_info* connection, fuse_config* config) {
  connection->max_write = kRequestBytesMax;
  connection->max_background = 64;
  config->use_ino = 1;
  config->hard_remove = 1;
  config->nullpath_ok = 1;
  config->attr_timeout = 0;
  config->entry_timeout = 0;
  config->negative_timeout = 0;
  return fuse_get_context()->private_data;
}

int on_getattr(const char* path, struct stat* st, fuse_file_info* info) {
  if (is_control(path)) {
    *st = {};
    st->st_mode = S_IFREG | 0600;
    st->st_nlink = 1;
    return 0;
  }
  const auto running = disk().enter();
  if (!running) return -EIO;
  // An open file may have been unlinked; its path is null then.
  if (path == nullptr) {
    const Handle* handle = handle_of(info);
    return handle == nullptr ? -ENOENT : handle->file->stat(st);
  }
  if (::fstatat(disk().root_fd(), relative(path), st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  if (const auto file = disk().find(st->st_ino)) st->st_size = static_cast<off_t>(file->size());
  return 0;
}

int on_opendir(const char* path, fuse_file_info* info) {
  const auto running = disk().enter();
  if (!running) return -EIO;
  const int fd = ::openat(disk().root_fd(), relative(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  info->fh = reinterpret_cast<std::uint64_t>(::fdopendir(fd));
  return 0;
}

// The path of an open directory is not given.
int on_readdir(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info* info,
               fuse_readdir_flags) {
  const auto running = disk().enter();
  if (!running) return -EIO;
  auto* directory = reinterpret_cast<DIR*>(info->fh);
  ::rewinddir(directory);
  while (const dirent* entry = ::readdir(directory)) {
    struct stat st {};
    st.st_ino = entry->d_ino;
    st.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    if (fill(buffer, entry->d_name, &st, 0, static_cast<fuse_fill_dir_flags>(0)) != 0) break;
  }
  return 0;
}

int on_releasedir(const char*, fuse_file_info* info) {
  ::closedir(reinterpret_cast<DIR*>(info->fh));
  return 0;
}

int open_file(const char* path, fuse_file_info* info, int extra_flags, mode_t mode) {
  info->direct_io = 1;
  info->fh = 0;
  if (is_control(path)) return 0;
  const auto running = disk().enter();
  if (!running) return -EIO;
  // Always for reading too (part of a sector is merged), and never with flags that would make the
  // backing file do the flushing or the positioning. O_TRUNC goes through the file below.
  const int fd = ::openat(disk().root_fd(), relative(path), O_RDWR | O_CLOEXEC | extra_flags, mode);
  if (fd < 0) return -errno;
  auto handle = std::make_unique<Handle>(Handle{disk().attach(fd, path)});
  if ((info->flags & O_TRUNC) != 0) {
    if (const int error = handle->file->truncate(0); error != 0) return error;
  }
  info->fh = reinterpret_cast<std::uint64_t>(handle.release());
  return 0;
}

int on_open(const char* path, fuse_file_info* info) { return open_file(path, info, 0, 0); }

int on_create(const char* path, mode_t mode, fuse_file_info* info) {
  return open_file(path, info, O_CREAT | (info->flags & O_EXCL), mode);
}

int on_release(const char*, fuse_file_info* info) {
  const std::unique_ptr<Handle> handle(handle_of(info));
  if (handle != nullptr) disk().detach(handle->file);
  return 0;
}

int read_control(char* buffer, std::size_t size, off_t offset) {
  const std::string text = disk().statistics();
  if (static_cast<std::size_t>(offset) >= text.size()) return 0;
  const std::string_view part =
      std::string_view(text).substr(static_cast<std::size_t>(offset), size);
  std::memcpy(buffer, part.data(), part.size());
  return static_cast<int>(part.size());
}

int write_control(std::string_view line) {
  const auto length = static_cast<int>(line.size());
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const std::size_t space = line.find(' ');
  const std::string_view verb = line.substr(0, space);
  const std::string_view argument = space == line.npos ? "" : line.substr(space + 1);
  if (verb == "lie") {
    disk().lie_about(argument);
    return length;
  }
  if (line == "cut nothing-kept") {
    disk().cut(Fates::nothing_kept());
    return length;
  }
  std::uint64_t seed = 0;
  const auto parsed = std::from_chars(argument.begin(), argument.end(), seed);
  if (verb != "cut" || parsed.ec != std::errc{} || parsed.ptr != argument.end()) return -EINVAL;
  disk().cut(Fates(seed));
  return length;
}

int on_read(const char*, char* buffer, std::size_t size, off_t offset, fuse_file_info* info) {
  const Handle* handle = handle_of(info);
  if (handle == nullptr) return read_control(buffer, size, offset);
  const auto running = disk().enter();
  if (!running) return -EIO;
  return static_cast<int>(handle->file->read(static_cast<std::uint64_t>(offset),
                                             {reinterpret_cast<std::byte*>(buffer), size}));
}

int on_write(const char*, const char* buffer, std::size_t size, off_t offset,
             fuse_file_info* info) {
  const Handle* handle = handle_of(info);
  if (handle == nullptr) return write_control({buffer, size});
  return static_cast<int>(disk().write(*handle->file, static_cast<std::uint64_t>(offset),
                                       {reinterpret_cast<const std::byte*>(buffer), size},
                                       (info->flags & O_DSYNC) != 0));
}

int on_fsync(const char*, int, fuse_file_info* info) {
  const Handle* handle = handle_of(info);
  return handle == nullptr ? 0 : disk().flush(*handle->file);
}

int on_fsyncdir(const char*, int, fuse_file_info*) { return disk().enter() ? 0 : -EIO; }

int on_fallocate(const char*, int mode, off_t offset, off_t length, fuse_file_info* info) {
  const Handle* handle = handle_of(info);
  if (handle == nullptr) return -EOPNOTSUPP;
  const ByteRange range{static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)};
  const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  switch (mode & ~FALLOC_FL_KEEP_SIZE) {
    case 0: {
      const auto running = disk().enter();
      return running ? handle->file->allocate(range, keep_size) : -EIO;
    }
    case FALLOC_FL_PUNCH_HOLE:
    case FALLOC_FL_ZERO_RANGE: return disk().zero(*handle->file, range, !keep_size);
    default: return -EOPNOTSUPP;
  }
}

int on_truncate(const char* path, off_t size, fuse_file_info* info) {
  if (is_control(path)) return 0;
  const auto running = disk().enter();
  if (!running) return -EIO;
  if (const Handle* handle = handle_of(info)) {
    return handle->file->truncate(static_cast<std::uint64_t>(size));
  }
  const int fd = ::openat(disk().root_fd(), relative(path), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  const auto file = disk().attach(fd, path);
  const int result = file->truncate(static_cast<std::uint64_t>(size));
  disk().detach(file);
  return result;
}

int on_mkdir(const char* path, mode_t mode) {
  return backing([&](int root) { return ::mkdirat(root, relative(path), mode); });
}
int on_mknod(const char* path, mode_t mode, dev_t device) {
  return backing([&](int root) { return ::mknodat(root, relative(path), mode, device); });
}
int on_unlink(const char* path) {
  return backing([&](int root) { return ::unlinkat(root, relative(path), 0); });
}
int on_rmdir(const char* path) {
  return backing([&](int root) { return ::unlinkat(root, relative(path), AT_REMOVEDIR); });
}
int on_rename(const char* from, const char* to, unsigned flags) {
  return backing(
      [&](int root) { return ::renameat2(root, relative(from), root, relative(to), flags); });
}
int on_link(const char* from, const char* to) {
  return backing([&](int root) { return ::linkat(root, relative(from), root, relative(to), 0); });
}
int on_chmod(const char* path, mode_t mode, fuse_file_info*) {
  return backing([&](int root) { return ::fchmodat(root, relative(path), mode, 0); });
}
int on_chown(const char* path, uid_t user, gid_t group, fuse_file_info*) {
  return backing(
      [&](int root) { return ::fchownat(root, relative(path), user, group, AT_SYMLINK_NOFOLLOW); });
}
int on_utimens(const char* path, const timespec times[2], fuse_file_info*) {
  return backing(
      [&](int root) { return ::utimensat(root, relative(path), times, AT_SYMLINK_NOFOLLOW); });
}
int on_statfs(const char*, struct statvfs* st) {
  return backing([&](int root) { return ::fstatvfs(root, st); });
}

fuse_operations operations() {
  fuse_operations ops{};
  ops.init = on_init;
  ops.getattr = on_getattr;
  ops.opendir = on_opendir;
  ops.readdir = on_readdir;
  ops.releasedir = on_releasedir;
  ops.open = on_open;
  ops.create = on_create;
  ops.release = on_release;
  ops.read = on_read;
  ops.write = on_write;
  ops.fsync = on_fsync;
  ops.fsyncdir = on_fsyncdir;
  ops.fallocate = on_fallocate;
  ops.truncate = on_truncate;
  ops.mkdir = on_mkdir;
  ops.mknod = on_mknod;
  ops.unlink = on_unlink;
  ops.rmdir = on_rmdir;
  ops.rename = on_rename;
  ops.link = on_link;
  ops.chmod = on_chmod;
  ops.chown = on_chown;
  ops.utimens = on_utimens;
  ops.statfs = on_statfs;
  return ops;
}

int usage() {
  std::fprintf(stderr, "usage: mariner-powerdisk [--flush-delay-us N] BACKING MOUNTPOINT\n");
  return 2;
}

int run(int argc, char** argv) {
  PowerDiskOptions options;
  int next = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--flush-delay-us") {
    const std::string_view text = argv[2];
    const auto parsed = std::from_chars(text.begin(), text.end(), options.flush_delay_us);
    if (parsed.ec != std::errc{} || parsed.ptr != text.end()) return usage();
    next = 3;
  }
  if (argc - next != 2) return usage();
  options.root_fd = ::open(argv[next], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (options.root_fd < 0) {
    std::perror(argv[next]);
    return 1;
  }
  PowerDisk powerdisk(options);
  const fuse_operations ops = operations();
  char* fuse_argv[] = {argv[0], nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, fuse_argv);
  fuse* session = fuse_new(&args, &ops, sizeof ops, &powerdisk);
  if (session == nullptr || fuse_mount(session, argv[next + 1]) != 0) return 1;
  fuse_set_signal_handlers(fuse_get_session(session));
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, kThreadsMax);
  fuse_loop_cfg_set_idle_threads(config, kThreadsMax);
  const int result = fuse_loop_mt(session, config);
  fuse_loop_cfg_destroy(config);
  fuse_remove_signal_handlers(fuse_get_session(session));
  fuse_unmount(session);
  fuse_destroy(session);
  return result == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mariner::powerdisk

int main(int argc, char** argv) { return mariner::powerdisk::run(argc, argv); }
