#define FUSE_USE_VERSION 314
#include "uvfs/mount/fuse_server.h"

#include <fmt/format.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "uvfs/file_contents.h"
#include "uvfs/mount/mount_keeper.h"

namespace mariner::uvfs {
namespace {

constexpr double kForEver_s = 86'400;
constexpr double kForNow_s = 1;
constexpr std::size_t kNameBytesMax = 255;

// What is mounted. Numbers of files are this mount's: a handle of another one, that somebody has
// kept (NFS), is told by the generation.
struct Mounted {
  HistoryFiles& files;
  std::uint64_t generation = 0;
  std::vector<std::byte> buffer{};  // of what is read; it grows alone
};

Mounted& mounted_of(fuse_req_t request) {
  return *static_cast<Mounted*>(fuse_req_userdata(request));
}

HistoryFiles& files_of(fuse_req_t request) { return mounted_of(request).files; }

int errno_of(const Error& error) {
  // (EAGAIN would be for ever.)
  if (is_out_of_reach(error)) return EOPNOTSUPP;
  switch (error.code) {
    case ErrorCode::kNotFound: return ENOENT;
    case ErrorCode::kOutsideWindow: return ENOENT;
    case ErrorCode::kInvalidArgument: return ENOENT;  // a time that is none
    case ErrorCode::kLimit: return ENOMEM;
    case ErrorCode::kCorrupt: return EUCLEAN;
    case ErrorCode::kUnavailable: return EAGAIN;
    default: return EIO;
  }
}

void refuse(fuse_req_t request, const Error& error) { fuse_reply_err(request, errno_of(error)); }

timespec to_timespec(const FileTime& time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.ns)};
}

struct stat to_stat(const HistoryFiles::Attributes& from) {
  struct stat to {};
  const ObjectState& object = from.object;
  to.st_ino = from.id;
  to.st_mode = object.mode;
  to.st_nlink = object.links;
  to.st_uid = object.user;
  to.st_gid = object.group;
  to.st_size = static_cast<off_t>(object.size);
  to.st_blksize = kBlockBytes;
  to.st_blocks = static_cast<blkcnt_t>((object.size + 511) / 512);
  to.st_rdev = makedev(object.device >> 20, object.device & 0xfffff);
  to.st_mtim = to_timespec(object.modified);
  to.st_ctim = to_timespec(object.changed);
  to.st_atim = to.st_mtim;  // (Reading leaves no trace.)
  return to;
}

double timeout_of(const HistoryFiles::Attributes& from) {
  return from.lasting ? kForEver_s : kForNow_s;
}

Result<HistoryFiles::Attributes> find(HistoryFiles& files, fuse_ino_t parent,
                                      std::string_view name) {
  // (Of a file handle: what it is, and what that is in.)
  if (name == ".") return files.attributes(parent);
  if (name == "..") return files.parent(parent);
  return files.find(parent, name);
}

void init(void* /*mounted*/, fuse_conn_info* connection) {
  connection->want |= connection->capable & FUSE_CAP_EXPORT_SUPPORT;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (std::strlen(name) > kNameBytesMax) return (void)fuse_reply_err(request, ENAMETOOLONG);
  const auto found = find(files_of(request), parent, name);
  if (!found) return refuse(request, found.error());
  fuse_entry_param entry{};
  entry.ino = found->id;
  entry.generation = mounted_of(request).generation;
  entry.attr = to_stat(*found);
  entry.attr_timeout = timeout_of(*found);
  // (A time that was given as "5 minutes ago" is another one soon.)
  entry.entry_timeout = found->lasting && parent != HistoryFiles::kRoot ? kForEver_s : kForNow_s;
  fuse_reply_entry(request, &entry);
}

void getattr(fuse_req_t request, fuse_ino_t id, fuse_file_info* /*file*/) {
  const auto found = files_of(request).attributes(id);
  if (!found) return refuse(request, found.error());
  const struct stat attributes = to_stat(*found);
  fuse_reply_attr(request, &attributes, timeout_of(*found));
}

void readlink(fuse_req_t request, fuse_ino_t id) {
  const auto target = files_of(request).link_target(id);
  if (!target) return refuse(request, target.error());
  fuse_reply_readlink(request, target->c_str());
}

void open(fuse_req_t request, fuse_ino_t /*id*/, fuse_file_info* file) {
  if ((file->flags & O_ACCMODE) != O_RDONLY) return (void)fuse_reply_err(request, EROFS);
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void read(fuse_req_t request, fuse_ino_t id, std::size_t size, off_t offset,
          fuse_file_info* /*file*/) {
  std::vector<std::byte>& buffer = mounted_of(request).buffer;
  if (buffer.size() < size) buffer.resize(size);
  const auto bytes = std::span(buffer).first(size);
  const auto got = files_of(request).read(id, static_cast<std::uint64_t>(offset), bytes);
  if (!got) return refuse(request, got.error());
  fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), *got);
}

using Entries = std::vector<HistoryFiles::Entry>;

Entries& entries_of(const fuse_file_info* file) { return *reinterpret_cast<Entries*>(file->fh); }

void opendir(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  auto list = files_of(request).list(id);
  if (!list) return refuse(request, list.error());
  auto entries = std::make_unique<Entries>(std::move(*list));
  file->fh = reinterpret_cast<std::uint64_t>(entries.get());
  // What does not change, the kernel need not ask for again.
  file->cache_readdir = file->keep_cache = HistoryFiles::is_of_a_moment(id) ? 1 : 0;
  if (fuse_reply_open(request, file) == 0) (void)entries.release();
}

// Offsets: 1 and 2 behind "." and "..", and so on.
void readdir(fuse_req_t request, fuse_ino_t id, std::size_t size, off_t offset,
             fuse_file_info* file) {
  const Entries& entries = entries_of(file);
  std::vector<char> buffer(size);
  std::size_t used = 0;
  for (auto at = static_cast<std::size_t>(offset); at < entries.size() + 2; ++at) {
    struct stat about {};
    about.st_ino = at < 2 ? id : entries[at - 2].id;
    about.st_mode = at < 2 ? S_IFDIR : entries[at - 2].kind;
    const char* const name = at == 0 ? "." : at == 1 ? ".." : entries[at - 2].name.c_str();
    const std::size_t more = fuse_add_direntry(request, buffer.data() + used, size - used, name,
                                               &about, static_cast<off_t>(at + 1));
    if (more > size - used) break;
    used += more;
  }
  fuse_reply_buf(request, buffer.data(), used);
}

void releasedir(fuse_req_t request, fuse_ino_t /*id*/, fuse_file_info* file) {
  delete &entries_of(file);
  fuse_reply_err(request, 0);
}

void reply_bytes(fuse_req_t request, std::size_t size, std::span<const std::byte> bytes) {
  if (size == 0) {
    fuse_reply_xattr(request, bytes.size());
  } else if (size < bytes.size()) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

void getxattr(fuse_req_t request, fuse_ino_t id, const char* name, std::size_t size) {
  const auto attributes = files_of(request).extended_attributes(id);
  if (!attributes) return refuse(request, attributes.error());
  const auto found = std::ranges::find(attributes->all, name, &ObjectAttributes::One::name);
  if (found == attributes->all.end()) return (void)fuse_reply_err(request, ENODATA);
  reply_bytes(request, size, found->value);
}

void listxattr(fuse_req_t request, fuse_ino_t id, std::size_t size) {
  const auto attributes = files_of(request).extended_attributes(id);
  if (!attributes) return refuse(request, attributes.error());
  std::string names;
  for (const ObjectAttributes::One& each : attributes->all) (names += each.name) += '\0';
  reply_bytes(request, size, std::as_bytes(std::span(names)));
}

void statfs(fuse_req_t request, fuse_ino_t /*id*/) {
  struct statvfs about {};
  about.f_bsize = about.f_frsize = kBlockBytes;
  about.f_namemax = kNameBytesMax;
  about.f_flag = ST_RDONLY;
  fuse_reply_statfs(request, &about);
}

// What a file system makes one question ask for may be more than there is: that question has no
// answer then, and the mount goes on. (Each of these replies last.)
template <auto kAnswer>
struct Bounded;
template <typename... Words, void (*kAnswer)(fuse_req_t, Words...)>
struct Bounded<kAnswer> {
  static void answer(fuse_req_t request, Words... words) {
    try {
      kAnswer(request, words...);
    } catch (const std::bad_alloc&) {
      fuse_reply_err(request, ENOMEM);
    }
  }
};

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.init = init;
  all.lookup = Bounded<lookup>::answer;
  all.getattr = Bounded<getattr>::answer;
  all.readlink = Bounded<readlink>::answer;
  all.open = open;
  all.read = Bounded<read>::answer;
  all.opendir = Bounded<opendir>::answer;
  all.readdir = Bounded<readdir>::answer;
  all.releasedir = releasedir;
  all.getxattr = Bounded<getxattr>::answer;
  all.listxattr = Bounded<listxattr>::answer;
  all.statfs = statfs;
  return all;
}

}  // namespace

struct FuseServer::Session {
  explicit Session(HistoryFiles& files)
      : mounted_files{files, static_cast<std::uint64_t>(
                                 std::chrono::system_clock::now().time_since_epoch().count())} {}
  ~Session() {
    if (fuse == nullptr) return;
    if (handles_signals) fuse_remove_signal_handlers(fuse);
    keeper.end();
    if (mounted && (!kept || is_unmounted())) fuse_session_unmount(fuse);
    fuse_session_destroy(fuse);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Then fuse_session_unmount() frees what it has, and no more.
  [[nodiscard]] bool is_unmounted() const {
    pollfd device{.fd = fuse_session_fd(fuse), .events = 0, .revents = 0};
    return ::poll(&device, 1, 0) == 1 && (device.revents & POLLERR) != 0;
  }

  Mounted mounted_files;
  fuse_session* fuse = nullptr;
  MountKeeper keeper;
  bool mounted = false;
  bool kept = false;  // by the keeper
  bool handles_signals = false;
};

FuseServer::FuseServer(std::unique_ptr<Session> session) : session_(std::move(session)) {}
FuseServer::~FuseServer() = default;

Result<std::unique_ptr<FuseServer>> FuseServer::mount(HistoryFiles& files, const Options& options) {
  std::vector<std::string> words{"uvfs", "-o",
                                 "ro,default_permissions,subtype=uvfs,fsname=" + options.name};
  if (options.allow_other) words.back() += ",allow_other";
  std::vector<char*> pointers;
  for (std::string& each : words) pointers.push_back(each.data());
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  const fuse_lowlevel_ops all = operations();
  auto session = std::make_unique<Session>(files);
  fuse_session* const fuse =
      fuse_session_new(&arguments, &all, sizeof all, &session->mounted_files);
  fuse_opt_free_args(&arguments);
  if (fuse == nullptr) {
    return Error{ErrorCode::kInvalidArgument, "FUSE does not take these options"};
  }
  session->fuse = fuse;
  if (fuse_set_signal_handlers(fuse) != 0) return errno_error(errno, "signals");
  session->handles_signals = true;
  // (Whoever unmounts is in another folder by then.)
  std::error_code ignored;
  const auto folder = std::filesystem::canonical(options.folder, ignored);
  if (folder.empty() || fuse_session_mount(fuse, folder.c_str()) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} cannot be mounted: it has to be an empty folder of yours, and "
                             "the package fuse3 installed",
                             options.folder)};
  }
  session->mounted = true;
  auto keeper = MountKeeper::begin(fuse_session_fd(fuse), [fuse] { fuse_session_unmount(fuse); });
  if (!keeper) return keeper.error();
  session->keeper = std::move(*keeper);
  session->kept = true;
  return std::unique_ptr<FuseServer>(new FuseServer(std::move(session)));
}

Result<void> FuseServer::run() {
  const int ended = fuse_session_loop(session_->fuse);
  if (ended < 0) return errno_error(-ended, "FUSE");
  return {};
}

}  // namespace mariner::uvfs
