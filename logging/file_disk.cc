#include "logging/file_disk.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

constexpr int kSectorBytesMin = 512;
// The kernel reads no more ahead at once than the device takes in one request.
constexpr std::uint64_t kPrefetchedAtOnce = 512u << 10;

// Whether the kernel would pass a discard on to the device.
bool discards(dev_t device) {
  const std::string place =
      "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  // A partition has its disk's queue.
  for (const char* queue : {"/queue/discard_max_bytes", "/../queue/discard_max_bytes"}) {
    std::uint64_t bytes = 0;
    if (std::ifstream(place + queue) >> bytes) return bytes > 0;
  }
  return false;
}

std::vector<iovec> to_iovecs(std::span<const ConstBytes> parts) {
  std::vector<iovec> vectors;
  vectors.reserve(parts.size());
  for (const ConstBytes& part : parts) {
    vectors.push_back({const_cast<std::byte*>(part.data()), part.size()});
  }
  return vectors;
}

Error short_transfer(const std::string& path, const char* what, std::uint64_t offset,
                     std::uint64_t expected, std::uint64_t found) {
  return Error{ErrorCode::kIo, path + ": " + what + " at byte " + std::to_string(offset) +
                                   " moved " + std::to_string(found) + " of " +
                                   std::to_string(expected) + " bytes"};
}

// Tries until it succeeds or `wait` is over.
template <typename Try>
bool within(std::chrono::milliseconds wait, Try attempt) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  const auto until = std::chrono::steady_clock::now() + wait;
  while (!attempt()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool is_block_device(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
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
                                                 IoRing* ring,
                                                 std::chrono::milliseconds lock_wait) {
  int flags = O_RDWR | O_CLOEXEC | (caching == Caching::kDirect ? O_DIRECT : 0);
  if (is_block_device(path)) flags |= O_EXCL;  // refused while it is mounted, or part of another
  int fd = -1;
  within(lock_wait, [&] {
    fd = ::open(path.c_str(), flags);
    return fd >= 0 || errno != EBUSY;
  });
  if (fd < 0) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, path + ": does not exist"};
    if (errno == EBUSY) {
      return Error{
          ErrorCode::kBusy,
          path + ": is in use; unmount it, or stop what holds it (is a marinerd running?)"};
    }
    return errno_error(errno, path + ": open");
  }
  std::unique_ptr<FileDisk> disk(new FileDisk(path, fd, ring));
  if (!within(lock_wait, [fd] { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; })) {
    return Error{ErrorCode::kBusy, path + ": another process has it open (is a marinerd running?)"};
  }
  if (Result<void> looked = disk->look_at(flags); !looked) return looked.error();
  return disk;
}

// Size, alignment, and what the device can do.
Result<void> FileDisk::look_at(int open_flags) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return errno_error(errno, path_ + ": stat");
  const bool is_device = S_ISBLK(status.st_mode);
  if (is_device) {
    std::uint64_t size = 0;
    if (::ioctl(fd_, BLKGETSIZE64, &size) != 0) return errno_error(errno, path_ + ": size");
    size_bytes_ = size;
    can_forget_ = discards(status.st_rdev);
  } else if (S_ISREG(status.st_mode)) {
    size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  } else {
    return Error{ErrorCode::kInvalidArgument, path_ + ": neither a file nor a block device"};
  }
  if ((open_flags & O_DIRECT) == 0) return {};
  alignment_ = direct_alignment(is_device);
  if (alignment_ > kBlockBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 path_ + ": expected a device that takes writes of " + std::to_string(kBlockBytes) +
                     " bytes, found one that takes multiples of " + std::to_string(alignment_) +
                     "; use another, or a file on a file system"};
  }
  return {};
}

// What O_DIRECT demands of offsets, lengths and memory: as the kernel says, or as trying shows.
std::uint32_t FileDisk::direct_alignment(bool is_device) const {
#ifdef STATX_DIOALIGN  // Linux 6.1
  struct statx extended {};
  if (::statx(fd_, "", AT_EMPTY_PATH, STATX_DIOALIGN, &extended) == 0 &&
      (extended.stx_mask & STATX_DIOALIGN) != 0 && extended.stx_dio_offset_align != 0) {
    return std::max(extended.stx_dio_offset_align, extended.stx_dio_mem_align);
  }
#endif
  int sector = 0;
  if (is_device && ::ioctl(fd_, BLKSSZGET, &sector) == 0 && sector >= kSectorBytesMin) {
    return static_cast<std::uint32_t>(sector);
  }
  // Memory and offset that are multiples of a sector and of no more. A file too short to tell is
  // read without moving a byte, which is refused or not all the same.
  Payload block = Payload::allocate(kBlockBytes);
  const ssize_t n = ::pread(fd_, block.data() + kSectorBytesMin, kSectorBytesMin, kSectorBytesMin);
  return n >= 0 ? kSectorBytesMin : kBlockBytes;
}

FileDisk::~FileDisk() {
  CHECK_MSG(!forgetting_, "a disk is closed while it forgets");
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
      return short_transfer(path_, "read", offset, to.size(), done);
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> FileDisk::write(std::uint64_t offset, std::span<const ConstBytes> parts,
                             Durability durability) {
  std::vector<iovec> vectors = to_iovecs(parts);
  std::size_t at = 0;
  const bool durable = durability == Durability::kDurable;
  const int flags = durable && durable_way_ == DurableWay::kFua ? RWF_DSYNC : 0;
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
  if (durable && durable_way_ == DurableWay::kFlush) return flush();
  return {};
}

Result<void> FileDisk::write_past_cache(std::span<const Write> writes) {
  const std::lock_guard lock(direct_mutex_);
  if (!std::exchange(direct_tried_, true)) {
    Result<std::unique_ptr<DirectWriter>> opened = DirectWriter::open(fd_);
    if (opened) direct_writer_ = *std::move(opened);
  }
  if (direct_writer_ == nullptr) return Disk::write_past_cache(writes);
  for (const std::size_t each : direct_writer_->write(writes)) {
    Result<void> written = write(writes[each].offset, writes[each].parts, Durability::kVolatile);
    if (!written) return written;
  }
  return {};
}

bool FileDisk::has_place(ByteRange range) {
  constexpr std::uint32_t kExtentsMax = 16;
  constexpr std::uint32_t kElsewhere = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
                                       FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_DATA_INLINE |
                                       FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_SHARED;
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + kExtentsMax * sizeof(fiemap_extent)>
      memory{};
  auto& map = *reinterpret_cast<fiemap*>(memory.data());
  map.fm_start = range.offset;
  map.fm_length = range.length;
  map.fm_extent_count = kExtentsMax;
  if (::ioctl(fd_, FS_IOC_FIEMAP, &map) != 0) return false;
  std::uint64_t at = range.offset;
  for (std::uint32_t i = 0; i < map.fm_mapped_extents && at < range.end(); ++i) {
    const fiemap_extent& each = map.fm_extents[i];
    if (each.fe_logical > at || (each.fe_flags & kElsewhere) != 0) return false;
    at = each.fe_logical + each.fe_length;
  }
  return at >= range.end();
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

Result<void> FileDisk::wait_for_writeback(ByteRange range) {
  if (::sync_file_range(fd_, static_cast<off64_t>(range.offset), static_cast<off64_t>(range.length),
                        SYNC_FILE_RANGE_WAIT_BEFORE) == 0) {
    return {};
  }
  return errno_error(errno, path_ + ": writing back");
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

std::unique_ptr<FileDisk::Transfer> FileDisk::new_transfer() {
  if (spare_.empty()) return std::make_unique<Transfer>();
  std::unique_ptr<Transfer> transfer = std::move(spare_.back());
  spare_.pop_back();
  return transfer;
}

void FileDisk::finish(std::unique_ptr<Transfer> transfer, Result<void> result) {
  Completion done = std::move(transfer->done);
  // Before the completion: it may need one, or close the disk.
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(transfer));
  done(std::move(result));
}

void FileDisk::async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) {
  CHECK(ring_ != nullptr);
  std::unique_ptr<Transfer> transfer = new_transfer();
  transfer->offset = offset;
  transfer->to = to;
  transfer->expected = to.size();
  transfer->done = std::move(done);
  read_on(std::move(transfer));
}

// Piece by piece: the ring is there for others, too.
void FileDisk::async_prefetch(ByteRange range, Completion done) {
  const bool buffered = alignment_ == 1;
  if (range.length == 0 || !buffered || ring_ == nullptr) return done({});
  const ByteRange piece{range.offset, std::min(range.length, kPrefetchedAtOnce)};
  const ByteRange rest{piece.end(), range.length - piece.length};
  ring_->advise(fd_, piece.offset, piece.length, POSIX_FADV_WILLNEED,
                [this, rest, done = std::move(done)](std::int64_t) mutable {
                  async_prefetch(rest, std::move(done));
                });
}

// Reads what is missing of it.
void FileDisk::read_on(std::unique_ptr<Transfer> transfer) {
  const std::span<std::byte> to = transfer->to;
  const std::uint64_t offset = transfer->offset;
  ring_->read(fd_, to, offset, 0,
              [this, transfer = std::move(transfer)](std::int64_t moved) mutable {
                read_answered(std::move(transfer), moved);
              });
}

void FileDisk::read_answered(std::unique_ptr<Transfer> transfer, std::int64_t moved) {
  if (moved == static_cast<std::int64_t>(transfer->to.size())) {
    return finish(std::move(transfer), {});
  }
  if (moved < 0 && moved != -EINTR && moved != -EAGAIN) {
    Error error = errno_error(static_cast<int>(-moved),
                              path_ + ": read at byte " + std::to_string(transfer->offset));
    return finish(std::move(transfer), std::move(error));
  }
  if (moved == 0) {
    Error error = short_transfer(path_, "read", transfer->offset, transfer->to.size(), 0);
    return finish(std::move(transfer), std::move(error));
  }
  if (moved > 0) {
    transfer->offset += static_cast<std::uint64_t>(moved);
    transfer->to = transfer->to.subspan(static_cast<std::size_t>(moved));
  }
  read_on(std::move(transfer));
}

void FileDisk::async_write(std::uint64_t offset, std::vector<ConstBytes> parts,
                           Durability durability, Completion done) {
  CHECK(ring_ != nullptr);
  std::unique_ptr<Transfer> transfer = new_transfer();
  transfer->offset = offset;
  transfer->expected = 0;
  for (const ConstBytes& part : parts) transfer->expected += part.size();
  transfer->done = std::move(done);
  auto answered = [this, transfer = std::move(transfer)](std::int64_t moved) mutable {
    write_answered(std::move(transfer), moved);
  };
  if (durability == Durability::kDurable && durable_way_ == DurableWay::kFlush) {
    return ring_->write_and_flush(fd_, parts, offset, std::move(answered));
  }
  ring_->write(fd_, parts, offset, durability == Durability::kDurable ? RWF_DSYNC : 0,
               std::move(answered));
}

void FileDisk::async_flush(Completion done) {
  CHECK(ring_ != nullptr);
  ring_->flush(fd_, [this, done = std::move(done)](std::int64_t answer) mutable {
    if (answer >= 0) return done({});
    done(errno_error(static_cast<int>(-answer), path_ + ": cannot flush"));
  });
}

void FileDisk::write_answered(std::unique_ptr<Transfer> transfer, std::int64_t moved) {
  if (moved == static_cast<std::int64_t>(transfer->expected)) {
    return finish(std::move(transfer), {});
  }
  Error error = moved < 0
                    ? errno_error(static_cast<int>(-moved),
                                  path_ + ": write at byte " + std::to_string(transfer->offset))
                    : short_transfer(path_, "write", transfer->offset, transfer->expected,
                                     static_cast<std::uint64_t>(moved));
  finish(std::move(transfer), std::move(error));
}

// A discard blocks, and the ring has no request for it before Linux 6.12.
void FileDisk::async_forget(ByteRange range, Completion done) {
  CHECK(can_forget_ && ring_ != nullptr && !std::exchange(forgetting_, true));
  Executor& executor = ring_->executor();
  forgetter_ = std::jthread([this, range, &executor, done = std::move(done)]() mutable {
    std::uint64_t place[2] = {range.offset, range.length};
    Result<void> result;
    if (::ioctl(fd_, BLKDISCARD, place) != 0) {
      result = errno_error(errno, path_ + ": discard at byte " + std::to_string(range.offset));
    }
    executor.post([this, result = std::move(result), done = std::move(done)]() mutable {
      forgetting_ = false;
      done(std::move(result));
    });
  });
}

}  // namespace mariner::logging
