// One file on the disk that loses power: its backing file and its unflushed writes.
//
// The logical size may be ahead of the backing file's until a flush. Functions return 0 (or a
// number of bytes) or a negative errno, as FUSE wants them. Thread-safe.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "tests/powerdisk/overlay.h"

namespace mariner::powerdisk {

class PowerFile {
 public:
  // Takes over `fd`, opened for reading and writing. `name` is for rules about single files.
  PowerFile(int fd, std::string name);
  ~PowerFile();
  PowerFile(const PowerFile&) = delete;
  PowerFile& operator=(const PowerFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }

  ssize_t read(std::uint64_t offset, std::span<std::byte> bytes);
  // Volatile until a flush covers it. Draws the write's id from `ids` under the lock, so that ids
  // ascend within a file. Returns the id through `id`.
  int write(std::uint64_t offset, std::span<const std::byte> bytes, std::atomic<std::uint64_t>& ids,
            WriteId* id);
  // Volatile zeros; grows the file only if `grow`.
  int write_zeros(ByteRange range, bool grow, std::atomic<std::uint64_t>& ids);
  // Durable at once, as metadata is here. `allocate` reserves space without changing contents.
  int truncate(std::uint64_t size);
  int allocate(ByteRange range, bool keep_size);

  // Everything written before the call is on the medium when it returns.
  int flush();
  // The write `id` of `range` is on the medium; others stay as they are.
  int flush_write(ByteRange range, WriteId id);
  // The power is gone. Returns how many sectors reached the medium.
  std::uint64_t cut(const Fates& fates);

  // As fstat, with the logical size.
  int stat(struct ::stat* st);
  [[nodiscard]] std::uint64_t size();
  [[nodiscard]] bool clean();
  [[nodiscard]] std::size_t unflushed_pages();

 private:
  ssize_t read_locked(std::uint64_t offset, std::span<std::byte> bytes);
  int write_sectors_locked(std::uint64_t offset, std::span<const std::byte> bytes, WriteId id);
  // Writes a sector to the backing file, not past the logical size.
  void persist(std::uint64_t offset, std::span<const std::byte> sector);

  const int fd_;
  const std::string name_;
  std::mutex mutex_;
  Overlay overlay_;         // guarded by mutex_
  std::uint64_t size_ = 0;  // guarded by mutex_; the logical size
  int persist_error_ = 0;   // guarded by mutex_; the first failed write to the backing file
};

}  // namespace mariner::powerdisk
