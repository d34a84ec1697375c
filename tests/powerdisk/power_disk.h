// The disk that loses power: a folder whose files forget what was not flushed when the power goes.
//
// What a flush covers, as Linux promises it and no more:
//   - fsync and fdatasync make one file durable; other files stay as they are.
//   - A write with O_DSYNC (or RWF_DSYNC, which the kernel turns into that flag of the FUSE write)
//     makes that write durable; earlier writes of the file stay as they are.
//   - What changes only metadata (create, rename, unlink, truncate, preallocation) is durable at
//     once. Punching a hole and zeroing a range are writes of zeros, which need a flush.
//   - A size that grew by unflushed writes is lost with them: the file then ends behind the last
//     sector that survived, and reads as zeros where sectors below that were lost.
// A cut makes a seed choose the survivors among the unflushed writes, in any order and torn at
// sector boundaries. From then on every operation fails with EIO, until a new PowerDisk is made
// over the folder. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/powerdisk/power_file.h"

namespace mariner::powerdisk {

struct PowerDiskOptions {
  int root_fd = -1;                  // the backing folder; borrowed
  std::uint64_t flush_delay_us = 0;  // a flush takes effect, and returns, after this long
  // Unflushed 4 KiB pages (with versions) in all; a file that writes past it is destaged first.
  std::uint64_t cache_pages_max = 1u << 18;
};

class PowerDisk {
 public:
  // Held while an operation runs; the cut waits for it. Without value: there is no power.
  using Running = std::optional<std::shared_lock<std::shared_mutex>>;

  explicit PowerDisk(const PowerDiskOptions& options) : options_(options) {}

  [[nodiscard]] Running enter();
  [[nodiscard]] int root_fd() const { return options_.root_fd; }

  // The file behind `fd`, which is taken over (closed if the file is known already). Call with a
  // Running held, as all that follows.
  std::shared_ptr<PowerFile> attach(int fd, const std::string& name);
  // A handle on `file` was closed: a file without unflushed writes is forgotten.
  void detach(const std::shared_ptr<PowerFile>& file);
  // The known file with this inode number, or null.
  std::shared_ptr<PowerFile> find(std::uint64_t inode);

  // As pwrite with these open flags. Enters by itself, because a synchronous write waits.
  ssize_t write(PowerFile& file, std::uint64_t offset, std::span<const std::byte> bytes,
                bool durable);
  int zero(PowerFile& file, ByteRange range, bool grow);
  int flush(PowerFile& file);

  // The power goes.
  void cut(const Fates& fates);
  // From now on flushes of files whose name contains `name` do nothing and succeed: a disk that
  // lies, to prove that a test notices a missing flush. Empty: no file. What they hold unflushed
  // now is destaged first, and nothing is later, so that a cut can lose all that was lied about.
  void lie_about(std::string_view name);
  // "key value" lines.
  [[nodiscard]] std::string statistics();

 private:
  void wait_for_flush() const;
  bool lied_about(const PowerFile& file);
  void destage_if_full(PowerFile& file);

  const PowerDiskOptions options_;
  std::shared_mutex gate_;  // shared: operations; exclusive: the cut
  std::atomic<bool> power_{true};
  std::atomic<std::uint64_t> write_ids_{0};
  std::atomic<std::uint64_t> flushes_{0};
  std::atomic<std::uint64_t> durable_writes_{0};
  std::atomic<std::uint64_t> volatile_writes_{0};
  std::atomic<std::uint64_t> lies_{0};
  std::atomic<std::uint64_t> destaged_files_{0};
  std::atomic<std::uint64_t> pages_at_cut_{0};
  std::atomic<std::uint64_t> survived_sectors_{0};

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<PowerFile>> files_;  // by inode number
  std::string lie_;
};

}  // namespace mariner::powerdisk
