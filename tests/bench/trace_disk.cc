// A disk whose every write is remembered: a file, by FUSE, for a loop device of this machine.
//
//   mariner-trace-disk WORK TRACE MOUNTPOINT
//
// MOUNTPOINT/disk is WORK, an image that exists; what is written goes there, and to TRACE (a trace
// of writes, as ifsck and uvfs read it, with a copy of WORK that was made before). Stays in the
// foreground until it is unmounted.
#define FUSE_USE_VERSION 314

#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse_lowlevel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/write_trace.h"

namespace mariner::ifsck {
namespace {

constexpr fuse_ino_t kDisk = 2;
constexpr const char* kName = "disk";
constexpr unsigned kWriteBytesMax = 1u << 20;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-trace-disk: {}\n", what);
  std::exit(1);
}

class TraceDisk {
 public:
  TraceDisk(const std::string& work, const std::string& trace)
      : work_(::open(work.c_str(), O_RDWR | O_CLOEXEC)), bytes_(size_of(work)), trace_([&] {
          auto made = TraceWriter::create(trace, bytes_);
          if (!made) give_up(made.error().message);
          return std::move(*made);
        }()) {
    if (work_.fd() < 0) give_up(work + " cannot be opened");
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int fd() const { return work_.fd(); }

  // Whole blocks go to the trace, whatever part of them was written.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> from) {
    if (!work_.write(offset, from)) return false;
    const BlockRange range = ByteRange{offset, from.size()}.covering_blocks();
    std::vector<std::byte> blocks(range.count.bytes());
    if (!work_.read(range.first.byte_offset(), blocks)) return false;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    last_.ns = std::max<std::uint64_t>(
        last_.ns + 1, static_cast<std::uint64_t>(
                          std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
    return trace_.write(last_, range.first, blocks).has_value();
  }

 private:
  static std::uint64_t size_of(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0 || about.st_size % kBlockBytes != 0) {
      give_up(path + " is no image of whole blocks of 4096 bytes");
    }
    return static_cast<std::uint64_t>(about.st_size);
  }

  TraceFile work_;
  std::uint64_t bytes_;
  TraceWriter trace_;
  VersionTime last_;
};

TraceDisk& disk_of(fuse_req_t request) {
  return *static_cast<TraceDisk*>(fuse_req_userdata(request));
}

struct stat about(const TraceDisk& disk, fuse_ino_t id) {
  struct stat to {};
  to.st_ino = id;
  to.st_nlink = 1;
  to.st_mode = id == kDisk ? S_IFREG | 0600 : S_IFDIR | 0700;
  to.st_size = id == kDisk ? static_cast<off_t>(disk.bytes()) : 0;
  return to;
}

void lookup(fuse_req_t request, fuse_ino_t /*parent*/, const char* name) {
  if (std::strcmp(name, kName) != 0) return (void)fuse_reply_err(request, ENOENT);
  fuse_entry_param entry{};
  entry.ino = kDisk;
  entry.attr = about(disk_of(request), kDisk);
  entry.attr_timeout = entry.entry_timeout = 3600;
  fuse_reply_entry(request, &entry);
}

void getattr(fuse_req_t request, fuse_ino_t id, fuse_file_info* /*file*/) {
  const struct stat attributes = about(disk_of(request), id);
  fuse_reply_attr(request, &attributes, 3600);
}

void open(fuse_req_t request, fuse_ino_t /*id*/, fuse_file_info* file) {
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

void read(fuse_req_t request, fuse_ino_t /*id*/, std::size_t size, off_t offset,
          fuse_file_info* /*file*/) {
  std::vector<char> bytes(size);
  const ssize_t got = ::pread(disk_of(request).fd(), bytes.data(), size, offset);
  if (got < 0) return (void)fuse_reply_err(request, errno);
  fuse_reply_buf(request, bytes.data(), static_cast<std::size_t>(got));
}

void write(fuse_req_t request, fuse_ino_t /*id*/, const char* from, std::size_t size, off_t offset,
           fuse_file_info* /*file*/) {
  TraceDisk& disk = disk_of(request);
  const auto at = static_cast<std::uint64_t>(offset);
  if (at + size > disk.bytes()) return (void)fuse_reply_err(request, ENOSPC);
  if (!disk.write(at, std::as_bytes(std::span(from, size)))) {
    return (void)fuse_reply_err(request, EIO);
  }
  fuse_reply_write(request, size);
}

// What is in the trace is not to survive this machine.
void fsync(fuse_req_t request, fuse_ino_t /*id*/, int /*data*/, fuse_file_info* /*file*/) {
  fuse_reply_err(request, 0);
}

void init(void* /*disk*/, fuse_conn_info* connection) { connection->max_write = kWriteBytesMax; }

int serve(TraceDisk& disk, const std::string& folder) {
  char name[] = "mariner-trace-disk";
  char* words[] = {name};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  fuse_lowlevel_ops all{};
  all.init = init;
  all.lookup = lookup;
  all.getattr = getattr;
  all.open = open;
  all.read = read;
  all.write = write;
  all.fsync = fsync;
  fuse_session* const session = fuse_session_new(&arguments, &all, sizeof all, &disk);
  if (session == nullptr || fuse_session_mount(session, folder.c_str()) != 0) {
    give_up(folder + " cannot be mounted");
  }
  const int ended = fuse_session_loop(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return ended == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mariner::ifsck

int main(int count, char** words) {
  if (count != 4) mariner::ifsck::give_up("expected WORK TRACE MOUNTPOINT");
  mariner::ifsck::TraceDisk disk(words[1], words[2]);
  return mariner::ifsck::serve(disk, words[3]);
}
