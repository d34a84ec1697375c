#include "server/volume/spill.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "logging/file_disk.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::volume {
namespace {

using Kind = PendingContent::Kind;
using Run = PendingTable::Run;

constexpr std::array<char, 8> kMagic = {'M', 'A', 'R', 'S', 'P', 'I', 'L', 'L'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPartsMax = 512;  // of one write; below IOV_MAX

enum Offset : std::size_t {
  kAtMagic = 0,
  kAtVersion = 8,
  kAtHeadCrc = 12,
  kAtVolume = 16,
  kAtPayloadCrc = 20,
  kAtDurable = 24,
  kAtCommitted = 32,
  kAtRuns = 40,
  kAtPayloadBlocks = 48,
  kHeaderBytes = 64,
};
enum RunOffset : std::size_t { kAtFirst = 0, kAtCount = 8, kAtKind = 16, kRunBytes = 24 };
enum class RunKind : std::uint8_t { kZeros = 0, kBlocks = 1, kRepeated = 2 };

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  const int fd_;
};

std::uint64_t head_bytes(std::uint64_t runs) {
  return (kHeaderBytes + runs * kRunBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

std::uint64_t payload_blocks(const Run& run) {
  if (run.content.kind == Kind::kZero) return 0;
  return run.content.repeated ? 1 : run.range.count.value;
}

Result<void> write_all(const std::string& path, int fd, std::uint64_t offset,
                       std::span<iovec> parts) {
  while (!parts.empty()) {
    const ssize_t moved =
        ::pwritev(fd, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return errno_error(moved < 0 ? errno : EIO, path + ": write");
    offset += static_cast<std::uint64_t>(moved);
    auto left = static_cast<std::size_t>(moved);
    while (!parts.empty() && left >= parts.front().iov_len) {
      left -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (left > 0) {
      parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + left;
      parts.front().iov_len -= left;
    }
  }
  return {};
}

Result<void> read_all(const std::string& path, int fd, std::uint64_t offset,
                      std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t moved = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno_error(errno, path + ": read");
    if (moved == 0) {
      return Error{ErrorCode::kCorrupt, path + ": ends at byte " + std::to_string(offset) +
                                            ", and became shorter while it was read"};
    }
    to = to.subspan(static_cast<std::size_t>(moved));
    offset += static_cast<std::uint64_t>(moved);
  }
  return {};
}

std::vector<std::byte> pack_head(VolumeId volume, const Spill::Contents& contents,
                                 std::uint64_t blocks, std::uint32_t payload_crc) {
  std::vector<std::byte> head(head_bytes(contents.runs.size()));
  std::memcpy(head.data() + kAtMagic, kMagic.data(), kMagic.size());
  store_le(head.data() + kAtVersion, kVersion);
  store_le(head.data() + kAtVolume, volume.value);
  store_le(head.data() + kAtPayloadCrc, payload_crc);
  store_le(head.data() + kAtDurable, contents.durable.value);
  store_le(head.data() + kAtCommitted, contents.committed.value);
  store_le(head.data() + kAtRuns, std::uint64_t{contents.runs.size()});
  store_le(head.data() + kAtPayloadBlocks, blocks);
  std::byte* to = head.data() + kHeaderBytes;
  for (const Run& run : contents.runs) {
    RunKind kind = run.content.repeated ? RunKind::kRepeated : RunKind::kBlocks;
    if (run.content.kind == Kind::kZero) kind = RunKind::kZeros;
    store_le(to + kAtFirst, run.range.first.value);
    store_le(to + kAtCount, run.range.count.value);
    store_le(to + kAtKind, static_cast<std::uint8_t>(kind));
    to += kRunBytes;
  }
  store_le(head.data() + kAtHeadCrc, crc32c(head));
  return head;
}

// The head comes last: its CRC needs the others'.
Result<void> fill(const std::string& path, int fd, VolumeId volume,
                  const Spill::Contents& contents) {
  std::uint64_t offset = head_bytes(contents.runs.size());
  std::uint64_t blocks = 0;
  std::uint32_t crc = 0;
  std::vector<iovec> parts;
  const auto flush = [&]() -> Result<void> {
    Result<void> r = write_all(path, fd, offset, parts);
    parts.clear();
    offset = head_bytes(contents.runs.size()) + blocks * kBlockBytes;
    return r;
  };
  for (const Run& run : contents.runs) {
    const std::uint64_t stored = payload_blocks(run);
    if (stored == 0) continue;
    const auto bytes = std::as_const(run.content.payload)
                           .bytes()
                           .subspan(run.content.offset, stored * kBlockBytes);
    crc = crc32c(bytes, crc);
    blocks += stored;
    parts.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
    if (parts.size() < kPartsMax) continue;
    if (Result<void> r = flush(); !r) return r;
  }
  if (Result<void> r = flush(); !r) return r;
  std::vector<std::byte> head = pack_head(volume, contents, blocks, crc);
  iovec part{head.data(), head.size()};
  if (Result<void> r = write_all(path, fd, 0, {&part, 1}); !r) return r;
  if (::fsync(fd) != 0) return errno_error(errno, path + ": fsync");
  return {};
}

Result<void> replace(const std::string& path, VolumeId volume, const Spill::Contents& contents) {
  const std::string fresh = path + ".tmp";
  const auto put = [&]() -> Result<void> {
    const File file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.get() < 0) return errno_error(errno, fresh + ": create");
    if (Result<void> r = fill(fresh, file.get(), volume, contents); !r) return r;
    if (std::rename(fresh.c_str(), path.c_str()) != 0) return errno_error(errno, path + ": rename");
    return logging::sync_directory_of(path);
  };
  Result<void> r = put();
  if (!r) ::unlink(fresh.c_str());  // it may hold room that something else needs
  return r;
}

// A file that is being checked.
class Reader {
 public:
  Reader(const std::string& path, int fd, VolumeId volume, BlockCount blocks)
      : path_(path), fd_(fd), volume_(volume), blocks_(blocks) {}

  Result<Spill::Contents> read() {
    if (Result<void> r = read_header(); !r) return r.error();
    if (Result<void> r = read_runs(); !r) return r.error();
    if (Result<void> r = read_payload(); !r) return r.error();
    return std::move(contents_);
  }

 private:
  [[nodiscard]] Error damage(const std::string& what) const {
    return {ErrorCode::kCorrupt, path_ + ": " + what};
  }
  [[nodiscard]] Error unexpected(const char* what, std::uint64_t expected,
                                 std::uint64_t found) const {
    return damage(std::string(what) + " is " + std::to_string(found) + ", " +
                  std::to_string(expected) + " was expected");
  }

  Result<void> read_header() {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) return errno_error(errno, path_ + ": fstat");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size < kBlockBytes) {
      return damage("has " + std::to_string(size) + " bytes, at least 4096 were expected");
    }
    std::array<std::byte, kHeaderBytes> header{};
    if (Result<void> r = read_all(path_, fd_, 0, header); !r) return r;
    if (std::memcmp(header.data() + kAtMagic, kMagic.data(), kMagic.size()) != 0) {
      return damage("does not begin as a spill file");
    }
    const auto version = load_le<std::uint32_t>(header.data() + kAtVersion);
    if (version != kVersion) return unexpected("the version", kVersion, version);
    const auto volume = load_le<std::uint32_t>(header.data() + kAtVolume);
    if (volume != volume_.value) return unexpected("the volume", volume_.value, volume);
    contents_.durable = {load_le<std::uint64_t>(header.data() + kAtDurable)};
    contents_.committed = {load_le<std::uint64_t>(header.data() + kAtCommitted)};
    runs_ = load_le<std::uint64_t>(header.data() + kAtRuns);
    payload_blocks_ = load_le<std::uint64_t>(header.data() + kAtPayloadBlocks);
    payload_crc_ = load_le<std::uint32_t>(header.data() + kAtPayloadCrc);
    // So that the sizes below cannot overflow.
    if (runs_ > blocks_.value || payload_blocks_ > blocks_.value) {
      return damage("has " + std::to_string(runs_) + " runs with " +
                    std::to_string(payload_blocks_) + " blocks, the volume has " +
                    std::to_string(blocks_.value) + " blocks");
    }
    const std::uint64_t expected = head_bytes(runs_) + payload_blocks_ * kBlockBytes;
    if (size != expected) return unexpected("the size in bytes", expected, size);
    return {};
  }

  Result<void> read_runs() {
    std::vector<std::byte> head(head_bytes(runs_));
    if (Result<void> r = read_all(path_, fd_, 0, head); !r) return r;
    const auto crc = load_le<std::uint32_t>(head.data() + kAtHeadCrc);
    store_le(head.data() + kAtHeadCrc, std::uint32_t{0});
    if (const std::uint32_t found = crc32c(head); found != crc) {
      return unexpected("the CRC32C of the head", crc, found);
    }
    if (contents_.committed < contents_.durable) {
      return damage("ends at #" + std::to_string(contents_.committed.value) + ", below the image");
    }
    std::uint64_t next = 0;  // the lowest block that may come
    std::uint64_t stored = 0;
    const std::byte* from = head.data() + kHeaderBytes;
    for (std::uint64_t i = 0; i < runs_; ++i, from += kRunBytes) {
      const auto first = load_le<std::uint64_t>(from + kAtFirst);
      const auto count = load_le<std::uint64_t>(from + kAtCount);
      const auto kind = load_le<std::uint8_t>(from + kAtKind);
      if (first < next || first >= blocks_.value || count == 0 || count > blocks_.value - first ||
          kind > static_cast<std::uint8_t>(RunKind::kRepeated)) {
        return damage("run " + std::to_string(i) + " of " + std::to_string(count) +
                      " blocks from block " + std::to_string(first) +
                      " does not follow the one before it, is of an unknown kind, or goes beyond "
                      "the volume's " +
                      std::to_string(blocks_.value) + " blocks");
      }
      next = first + count;
      Run& run = contents_.runs.emplace_back();
      run.range = {{first}, {count}};
      run.content.kind = RunKind{kind} == RunKind::kZeros ? Kind::kZero : Kind::kMemory;
      run.content.repeated = RunKind{kind} == RunKind::kRepeated;
      stored += payload_blocks(run);
    }
    if (stored != payload_blocks_) {
      return unexpected("the number of payload blocks", stored, payload_blocks_);
    }
    return {};
  }

  Result<void> read_payload() {
    std::uint64_t offset = head_bytes(runs_);
    std::uint32_t crc = 0;
    for (Run& run : contents_.runs) {
      const std::uint64_t bytes = payload_blocks(run) * kBlockBytes;
      if (bytes == 0) continue;
      run.content.payload = Payload::allocate(bytes);
      if (Result<void> r = read_all(path_, fd_, offset, run.content.payload.bytes()); !r) return r;
      crc = crc32c(run.content.payload.bytes(), crc);
      offset += bytes;
    }
    if (crc != payload_crc_) {
      return unexpected("the CRC32C of the payload blocks", payload_crc_, crc);
    }
    return {};
  }

  const std::string& path_;
  const int fd_;
  const VolumeId volume_;
  const BlockCount blocks_;
  std::uint64_t runs_ = 0;
  std::uint64_t payload_blocks_ = 0;
  std::uint32_t payload_crc_ = 0;
  Spill::Contents contents_;
};

}  // namespace

Result<std::optional<Spill::Contents>> Spill::read(BlockCount blocks) const {
  const File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return std::optional<Contents>{};
  if (file.get() < 0) return errno_error(errno, path_ + ": open");
  Result<Contents> contents = Reader(path_, file.get(), volume_, blocks).read();
  if (!contents) return contents.error();
  return std::optional<Contents>(*std::move(contents));
}

void Spill::write(Contents contents, Done done) {
  CHECK(contents.durable <= contents.committed);
  worker_.run([path = path_, volume = volume_,
               contents = std::move(contents)] { return replace(path, volume, contents); },
              std::move(done));
}

void Spill::remove(Done done) {
  worker_.run(
      [path = path_]() -> Result<void> {
        if (::unlink(path.c_str()) != 0) {
          if (errno == ENOENT) return {};
          return errno_error(errno, path + ": unlink");
        }
        return logging::sync_directory_of(path);
      },
      std::move(done));
}

}  // namespace mariner::volume
