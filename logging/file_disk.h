// A Disk on a file or block device.
//
// kDirect (the log): O_DIRECT, aligned. kBuffered (the image): through the page cache, which is
// then the read cache of current data; any alignment. Blocking calls are thread-safe; asynchronous
// ones go through the IoRing of the owner's thread, and all must have completed before destruction.
#pragma once

#include <memory>
#include <string>

#include "logging/disk.h"
#include "logging/io_ring.h"

namespace mariner::logging {

class FileDisk final : public Disk {
 public:
  enum class Caching { kDirect, kBuffered };

  // Opens an existing file or device for reading and writing and locks it against a second
  // process. `ring` may be null: then only blocking calls are allowed.
  static Result<std::unique_ptr<FileDisk>> open(const std::string& path, Caching caching,
                                                IoRing* ring);
  // Creates a file of `size_bytes` that must not exist yet. kDirect preallocates the space
  // (kNoSpace when there is too little), kBuffered leaves it sparse. Durable on return, directory
  // entry included.
  static Result<void> create(const std::string& path, Caching caching, std::uint64_t size_bytes);

  ~FileDisk() override;
  FileDisk(const FileDisk&) = delete;
  FileDisk& operator=(const FileDisk&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Bytes that the file occupies on its file system.
  [[nodiscard]] std::uint64_t allocated_bytes() const;
  // Changes the length of a file. Durable on return.
  Result<void> resize(std::uint64_t size_bytes);

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] std::uint32_t alignment() const override { return alignment_; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override;
  Result<void> flush() override;
  void start_writeback(ByteRange range) override;
  Result<void> discard(ByteRange range) override;
  bool try_read(std::uint64_t offset, std::span<std::byte> to) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;

 private:
  FileDisk(std::string path, int fd, IoRing* ring) : path_(std::move(path)), fd_(fd), ring_(ring) {}

  std::string path_;
  int fd_;
  IoRing* ring_;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t alignment_ = 1;
};

// Makes a created, renamed or removed entry of `path`'s directory durable.
Result<void> sync_directory_of(const std::string& path);

}  // namespace mariner::logging
