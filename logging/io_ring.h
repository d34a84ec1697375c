// An io_uring of one Executor: asynchronous disk I/O for everything on that thread.
//
// Requests made during one turn of the event loop are submitted together at its end. Completions
// are reaped when fd() becomes readable (the owner of the event loop polls it and calls reap()).
// Requests beyond the ring's size wait in a queue. Owner's thread only.
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "proto/error.h"
#include "proto/executor.h"

namespace mariner::logging {

class IoRing {
 public:
  // Receives the number of bytes moved, or -errno.
  using Completion = UniqueFunction<void(std::int64_t)>;

  static Result<std::unique_ptr<IoRing>> create(Executor& executor, unsigned entries = 256);

  // Nothing may be in flight: the owner has drained its disks.
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  [[nodiscard]] int fd() const { return ring_.ring_fd; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_ + waiting_.size(); }

  // `flags` as of preadv2/pwritev2. Memory and vectors stay valid until the completion.
  void read(int file, std::vector<iovec> to, std::uint64_t offset, int flags, Completion done);
  void write(int file, std::vector<iovec> from, std::uint64_t offset, int flags, Completion done);

  // Runs the completions of everything that has completed.
  void reap();

  // Submits, waits for at least one completion, and reaps: for draining without an event loop.
  void wait();

 private:
  struct Request {
    bool is_write = false;
    int file = -1;
    int flags = 0;
    std::uint64_t offset = 0;
    std::vector<iovec> vectors;
    Completion done;
  };

  explicit IoRing(Executor& executor) : executor_(executor) {}
  void enqueue(std::unique_ptr<Request> request);
  bool prepare(Request* request);
  void submit();
  void submit_soon();

  Executor& executor_;
  io_uring ring_{};
  bool initialised_ = false;
  bool submit_pending_ = false;
  std::size_t in_flight_ = 0;
  std::deque<std::unique_ptr<Request>> waiting_;
  // Tells deferred work that outlived the ring that it is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::logging
