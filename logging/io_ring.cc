#include "logging/io_ring.h"

#include <cerrno>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {

Result<std::unique_ptr<IoRing>> IoRing::create(Executor& executor, unsigned entries) {
  std::unique_ptr<IoRing> ring(new IoRing(executor));
  io_uring_params params{};
  // Completions are reaped by the submitting thread alone, inside its own system calls.
  params.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CQSIZE;
  params.cq_entries = entries * 2;
  int rc = io_uring_queue_init_params(entries, &ring->ring_, &params);
  if (rc == -EINVAL) {
    params = {};
    rc = io_uring_queue_init_params(entries, &ring->ring_, &params);
  }
  if (rc < 0) return errno_error(-rc, "cannot set up io_uring (is it disabled on this system?)");
  ring->initialised_ = true;
  return ring;
}

IoRing::~IoRing() {
  *alive_ = false;
  CHECK_MSG(in_flight() == 0, "the disks of an IoRing must be drained before it");
  if (initialised_) io_uring_queue_exit(&ring_);
}

void IoRing::read(int file, std::vector<iovec> to, std::uint64_t offset, int flags,
                  Completion done) {
  enqueue(std::make_unique<Request>(
      Request{false, file, flags, offset, std::move(to), std::move(done)}));
}

void IoRing::write(int file, std::vector<iovec> from, std::uint64_t offset, int flags,
                   Completion done) {
  enqueue(std::make_unique<Request>(
      Request{true, file, flags, offset, std::move(from), std::move(done)}));
}

void IoRing::enqueue(std::unique_ptr<Request> request) {
  // Stay within the completion queue so that the kernel never has to overflow it.
  if (waiting_.empty() && in_flight_ < ring_.sq.ring_entries && prepare(request.get())) {
    static_cast<void>(request.release());  // the ring's until its completion
    ++in_flight_;
    submit_soon();
    return;
  }
  waiting_.push_back(std::move(request));
}

bool IoRing::prepare(Request* request) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) return false;
  const auto count = static_cast<unsigned>(request->vectors.size());
  if (request->is_write) {
    io_uring_prep_writev2(sqe, request->file, request->vectors.data(), count, request->offset,
                          request->flags);
  } else {
    io_uring_prep_readv2(sqe, request->file, request->vectors.data(), count, request->offset,
                         request->flags);
  }
  io_uring_sqe_set_data(sqe, request);
  return true;
}

void IoRing::submit_soon() {
  if (std::exchange(submit_pending_, true)) return;
  executor_.defer([this, alive = alive_] {
    if (!*alive) return;
    submit_pending_ = false;
    submit();
  });
}

void IoRing::submit() {
  int rc = 0;
  do {
    rc = io_uring_submit(&ring_);
  } while (rc == -EINTR);
  if (rc == -EAGAIN || rc == -EBUSY) {
    submit_soon();  // the kernel is short of memory or we of completions: again next turn
    return;
  }
  CHECK_MSG(rc >= 0, "io_uring_submit refused well-formed requests");
  if (io_uring_sq_ready(&ring_) > 0) submit_soon();  // the kernel took some of them only
}

void IoRing::reap() {
  for (;;) {
    io_uring_cqe* cqe = nullptr;
    if (io_uring_peek_cqe(&ring_, &cqe) != 0 || cqe == nullptr) break;
    std::unique_ptr<Request> request(static_cast<Request*>(io_uring_cqe_get_data(cqe)));
    const std::int64_t result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    CHECK(in_flight_ > 0);
    --in_flight_;
    request->done(result);
  }
  while (!waiting_.empty() && in_flight_ < ring_.sq.ring_entries &&
         prepare(waiting_.front().get())) {
    static_cast<void>(waiting_.front().release());
    waiting_.pop_front();
    ++in_flight_;
    submit_soon();
  }
}

void IoRing::wait() {
  submit();
  if (in_flight_ == 0) return;
  io_uring_cqe* cqe = nullptr;
  int rc = 0;
  do {
    rc = io_uring_wait_cqe(&ring_, &cqe);
  } while (rc == -EINTR);
  CHECK_MSG(rc == 0, "io_uring_wait_cqe");
  reap();
}

}  // namespace mariner::logging
