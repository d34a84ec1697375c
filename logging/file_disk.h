// A Disk on a file or block device.
//
// kDirect (the log): O_DIRECT, aligned. kBuffered (the image): through the page cache, which is
// then the read cache of current data; any alignment. What is written past that
// (write_past_cache()) is dropped from it, so reads always find what was written last. Blocking
// calls are thread-safe; asynchronous ones go through the IoRing of the owner's thread, and all
// must have completed before destruction.
//
// A kDurable write is made durable in one of two ways: by a write that the device completes only
// when it is stable (O_DSYNC; one command where the device knows FUA), or by a plain write and a
// flush of the device's cache behind it. Both promise the same; which is faster depends on the
// device (durability_probe.h).
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "logging/direct_writer.h"
#include "logging/disk.h"
#include "logging/io_ring.h"

namespace mariner::logging {

enum class DurableWay {
  kFua,    // each write by itself: O_DSYNC
  kFlush,  // a plain write, then fdatasync
};

class FileDisk final : public Disk {
 public:
  enum class Caching { kDirect, kBuffered };

  // Opens an existing file or device for reading and writing and locks it against a second
  // process; a device that is mounted or part of another one is kBusy. `ring` may be null: then
  // only blocking calls are allowed. The kernel keeps the lock of a killed process until that one's
  // last write has ended: `lock_wait` says how long to wait for it; kBusy then.
  static Result<std::unique_ptr<FileDisk>> open(const std::string& path, Caching caching,
                                                IoRing* ring,
                                                std::chrono::milliseconds lock_wait = {});
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
  // How writes from now on become durable; kFua until then. Nothing may be in flight.
  void set_durable_way(DurableWay way) { durable_way_ = way; }
  [[nodiscard]] DurableWay durable_way() const { return durable_way_; }

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] std::uint32_t alignment() const override { return alignment_; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const ConstBytes> parts,
                     Durability durability) override;
  // Many at a time, with O_DIRECT; through the page cache where that cannot be.
  Result<void> write_past_cache(std::span<const Write> writes) override;
  // As the file system tells its extents. Where they are more than a few, it is not known.
  [[nodiscard]] bool has_place(ByteRange range) override;
  Result<void> flush() override;
  void start_writeback(ByteRange range) override;
  Result<void> wait_for_writeback(ByteRange range) override;
  Result<void> discard(ByteRange range) override;
  // A block device that discards. Never a file: giving its space back, and taking it again with the
  // next synchronous write, are changes of the file system's metadata.
  [[nodiscard]] bool can_forget() const override { return can_forget_; }
  bool try_read(std::uint64_t offset, std::span<std::byte> to) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_prefetch(ByteRange range, Completion done) override;
  void submit_now() override { ring_->submit_now(); }
  void async_write(std::uint64_t offset, std::vector<ConstBytes> parts, Durability durability,
                   Completion done) override;
  void async_flush(Completion done) override;
  void async_forget(ByteRange range, Completion done) override;

 private:
  // An asynchronous read or write under way.
  struct Transfer {
    std::uint64_t offset = 0;
    std::span<std::byte> to;     // of a read
    std::uint64_t expected = 0;  // bytes
    Completion done;
  };

  FileDisk(std::string path, int fd, IoRing* ring) : path_(std::move(path)), fd_(fd), ring_(ring) {}
  Result<void> look_at(int open_flags);
  [[nodiscard]] std::uint32_t direct_alignment(bool is_device) const;
  std::unique_ptr<Transfer> new_transfer();
  void finish(std::unique_ptr<Transfer> transfer, Result<void> result);
  void read_on(std::unique_ptr<Transfer> transfer);
  void read_answered(std::unique_ptr<Transfer> transfer, std::int64_t moved);
  void write_answered(std::unique_ptr<Transfer> transfer, std::int64_t moved);

  std::string path_;
  int fd_;
  IoRing* ring_;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t alignment_ = 1;
  DurableWay durable_way_ = DurableWay::kFua;
  std::mutex direct_mutex_;  // guards these two:
  bool direct_tried_ = false;
  std::unique_ptr<DirectWriter> direct_writer_;  // null: not needed yet, or there is none
  bool can_forget_ = false;
  bool forgetting_ = false;
  std::jthread forgetter_;  // blocks in the device while forgetting_
  static constexpr std::size_t kSpareMax = 64;
  std::vector<std::unique_ptr<Transfer>> spare_;
};

// Makes a created, renamed or removed entry of `path`'s directory durable.
Result<void> sync_directory_of(const std::string& path);

}  // namespace mariner::logging
