// An io_uring of one Executor: asynchronous disk I/O for everything on that thread.
//
// Requests made during one turn of the event loop are submitted together at its end. Completions
// are reaped when fd() becomes readable (the owner of the event loop polls it and calls reap()).
// Requests beyond the ring's size wait in a queue, in order. What a request needs is kept for the
// next one: in the steady state nothing is allocated. Owner's thread only.
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "proto/error.h"
#include "proto/executor.h"

namespace mariner::logging {

class IoRing {
 public:
  // Receives the number of bytes moved, or -errno.
  using Completion = UniqueFunction<void(std::int64_t)>;
  using Bytes = std::span<const std::byte>;

  struct Options {
    unsigned entries = 256;  // at least 2
    // Uses nothing that Linux 5.10 does not have: what create() falls back to on an old kernel.
    bool basic = false;
  };

  static Result<std::unique_ptr<IoRing>> create(Executor& executor, const Options& options);
  static Result<std::unique_ptr<IoRing>> create(Executor& executor) {
    return create(executor, Options{});
  }

  // Nothing may be in flight: the owner has drained its disks.
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  [[nodiscard]] int fd() const { return ring_.ring_fd; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_ + waiting_.size(); }
  [[nodiscard]] Executor& executor() { return executor_; }

  // `flags` as of preadv2/pwritev2. The memory stays valid until the completion, `from` itself only
  // until the call returns; it has 1 to IOV_MAX parts.
  void read(int file, std::span<std::byte> to, std::uint64_t offset, int flags, Completion done);
  void write(int file, std::span<const Bytes> from, std::uint64_t offset, int flags,
             Completion done);
  // Writes, and when all of it is written makes the file's data durable as fdatasync does. The
  // result is that of the write if it failed or was short, else -errno of the flush if that failed,
  // else the number of bytes written: they are durable then, and only then.
  void write_and_flush(int file, std::span<const Bytes> from, std::uint64_t offset,
                       Completion done);

  // Makes durable, as fdatasync does, what has been written. The result is 0 or -errno.
  void flush(int file, Completion done);

  // As posix_fadvise does, but without waiting for anything. The result is 0 or -errno.
  void advise(int file, std::uint64_t offset, std::uint64_t length, int advice, Completion done);

  // Submits what has been requested in this turn now, and not at its end.
  void submit_now() { submit(); }

  // Runs the completions of everything that has completed.
  void reap();

  // Submits, waits for at least one completion, and reaps: for draining without an event loop.
  void wait();

 private:
  enum class Kind { kRead, kWrite, kWriteAndFlush, kFlush, kAdvise };
  struct Request {
    Kind kind = Kind::kRead;
    int file = -1;
    int flags = 0;  // or advice
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // of advice
    std::vector<iovec> vectors;
    Completion done;
    // What the kernel has answered so far.
    unsigned answers_missing = 0;
    std::int64_t moved = 0;       // of the read or write: bytes or -errno
    std::int64_t flushed = 0;     // of the flush: 0 or -errno
    bool flush_unlinked = false;  // the kernel did not take write and flush together
  };

  explicit IoRing(Executor& executor) : executor_(executor) {}
  [[nodiscard]] std::unique_ptr<Request> new_request();
  void fill(Request& request, std::span<const Bytes> from);
  void enqueue(std::unique_ptr<Request> request);
  bool prepare(Request* request);
  void submit();
  void submitted(std::size_t count);
  void submit_soon();
  void answered(std::uint64_t tag, std::int64_t result);
  void start_waiting();

  Executor& executor_;
  io_uring ring_{};
  bool initialised_ = false;
  bool submit_pending_ = false;
  std::size_t in_flight_ = 0;   // prepared or with the kernel
  std::size_t unanswered_ = 0;  // entries that the kernel has taken
  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<std::unique_ptr<Request>> spare_;  // at most as many as the ring has entries
  std::vector<std::uint64_t> unsubmitted_;       // tags of the entries the kernel has not taken yet
  // Tells deferred work that outlived the ring that it is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
