// Writes an open file or device past the page cache, many pieces at a time.
//
// It has a descriptor of its own (O_DIRECT) and an io_uring of its own, and blocks until the kernel
// has answered for all pieces. What the page cache has of them goes: the kernel writes it back
// before, if it was changed, and drops it before and behind the write, so that no read finds what
// was there earlier once write() has returned. A read through the cache that runs at the same time
// finds old or new bytes, and leaves neither behind it.
//
// Not thread-safe: one write() at a time, on whichever thread.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "logging/disk.h"

namespace mariner::logging {

class DirectWriter {
 public:
  // With the kernel at once: a device that takes each piece by itself has enough to do, and a
  // shared one is not held up for long.
  static constexpr unsigned kWritesAtATime = 128;

  // For what `file`, an open descriptor, has open; that one may be closed before this. An error
  // where the file system has no O_DIRECT, or the kernel no io_uring.
  static Result<std::unique_ptr<DirectWriter>> open(int file);
  ~DirectWriter();
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  // Which of `writes`, by their places there, were not written, or not whole; they do not overlap.
  // The others are, not durable until the file is flushed. What is not of whole blocks, in memory
  // or on the disk, is not written, nor what the kernel does not take.
  [[nodiscard]] std::vector<std::size_t> write(std::span<const Disk::Write> writes);

 private:
  explicit DirectWriter(int file) : file_(file) {}
  void reap(std::span<const std::int64_t> expected, std::vector<std::size_t>& failed);

  const int file_;
  io_uring ring_{};
  bool initialised_ = false;
  unsigned under_way_ = 0;
};

}  // namespace mariner::logging
