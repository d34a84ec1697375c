// A write that is to be flushed is two entries, linked: the kernel begins the flush when the whole
// write has succeeded, and cancels it otherwise. Both are answered, and a request completes when
// all its answers are there. The link holds only between entries that the kernel takes in one call.
// It takes fewer than it is offered when it is short of memory, and the flush may then run before
// the write has ended: submitted() sees where the kernel stopped, and such a write has failed.
#include "logging/io_ring.h"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {
namespace {

// An entry's tag is its request's address; the lowest bit says that it is the flush.
constexpr std::uint64_t kFlushBit = 1;

std::uint64_t tag_of(const void* request) { return reinterpret_cast<std::uintptr_t>(request); }

}  // namespace

Result<std::unique_ptr<IoRing>> IoRing::create(Executor& executor, const Options& options) {
  CHECK(options.entries >= 2);  // a write and its flush
  std::unique_ptr<IoRing> ring(new IoRing(executor));
  // From the newest kernel to the oldest. Completions are reaped by the submitting thread alone,
  // inside its own system calls, of which reap() makes one when it is told that some are to be had;
  // one refused entry does not hold up those behind it.
  static constexpr unsigned kFlags[] = {
      IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
          IORING_SETUP_SUBMIT_ALL,  // Linux 5.19
      0,
  };
  int rc = -EINVAL;
  for (const unsigned flags :
       std::span(kFlags).subspan(options.basic ? std::size(kFlags) - 1 : 0)) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = options.entries * 2;  // a request has two answers at most
    rc = io_uring_queue_init_params(options.entries, &ring->ring_, &params);
    if (rc != -EINVAL) break;
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

void IoRing::read(int file, std::span<std::byte> to, std::uint64_t offset, int flags,
                  Completion done) {
  std::unique_ptr<Request> request = new_request();
  request->kind = Kind::kRead;
  request->file = file;
  request->flags = flags;
  request->offset = offset;
  request->vectors.push_back({to.data(), to.size()});
  request->done = std::move(done);
  enqueue(std::move(request));
}

void IoRing::write(int file, std::span<const Bytes> from, std::uint64_t offset, int flags,
                   Completion done) {
  std::unique_ptr<Request> request = new_request();
  request->kind = Kind::kWrite;
  request->file = file;
  request->flags = flags;
  request->offset = offset;
  request->done = std::move(done);
  fill(*request, from);
  enqueue(std::move(request));
}

void IoRing::write_and_flush(int file, std::span<const Bytes> from, std::uint64_t offset,
                             Completion done) {
  std::unique_ptr<Request> request = new_request();
  request->kind = Kind::kWriteAndFlush;
  request->file = file;
  request->flags = 0;
  request->offset = offset;
  request->done = std::move(done);
  fill(*request, from);
  enqueue(std::move(request));
}

void IoRing::flush(int file, Completion done) {
  std::unique_ptr<Request> request = new_request();
  request->kind = Kind::kFlush;
  request->file = file;
  request->done = std::move(done);
  enqueue(std::move(request));
}

void IoRing::advise(int file, std::uint64_t offset, std::uint64_t length, int advice,
                    Completion done) {
  std::unique_ptr<Request> request = new_request();
  request->kind = Kind::kAdvise;
  request->file = file;
  request->flags = advice;
  request->offset = offset;
  request->length = length;
  request->done = std::move(done);
  enqueue(std::move(request));
}

std::unique_ptr<IoRing::Request> IoRing::new_request() {
  if (spare_.empty()) return std::make_unique<Request>();
  std::unique_ptr<Request> request = std::move(spare_.back());
  spare_.pop_back();
  request->vectors.clear();
  return request;
}

void IoRing::fill(Request& request, std::span<const Bytes> from) {
  CHECK(!from.empty() && from.size() <= IOV_MAX);
  for (const Bytes& part : from) {
    request.vectors.push_back({const_cast<std::byte*>(part.data()), part.size()});
  }
}

void IoRing::enqueue(std::unique_ptr<Request> request) {
  if (waiting_.empty() && prepare(request.get())) {
    static_cast<void>(request.release());  // the ring's until its completion
    submit_soon();
    return;
  }
  waiting_.push_back(std::move(request));
}

bool IoRing::prepare(Request* request) {
  const bool flushes = request->kind == Kind::kWriteAndFlush;
  // Stay within the completion queue so that the kernel never has to overflow it, and never begin
  // a pair that cannot be offered to the kernel as one.
  if (in_flight_ >= ring_.sq.ring_entries) return false;
  if (io_uring_sq_space_left(&ring_) < (flushes ? 2u : 1u)) return false;
  const auto count = static_cast<unsigned>(request->vectors.size());
  const std::uint64_t tag = tag_of(request);
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (request->kind == Kind::kRead) {
    io_uring_prep_readv2(sqe, request->file, request->vectors.data(), count, request->offset,
                         request->flags);
  } else if (request->kind == Kind::kFlush) {
    io_uring_prep_fsync(sqe, request->file, IORING_FSYNC_DATASYNC);
  } else if (request->kind == Kind::kAdvise) {
    io_uring_prep_fadvise(sqe, request->file, request->offset, static_cast<off_t>(request->length),
                          request->flags);
  } else {
    io_uring_prep_writev2(sqe, request->file, request->vectors.data(), count, request->offset,
                          request->flags);
  }
  io_uring_sqe_set_data64(sqe, tag);
  unsubmitted_.push_back(tag);
  if (flushes) {
    sqe->flags |= IOSQE_IO_LINK;
    io_uring_sqe* flush = io_uring_get_sqe(&ring_);
    io_uring_prep_fsync(flush, request->file, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data64(flush, tag | kFlushBit);
    unsubmitted_.push_back(tag | kFlushBit);
  }
  request->answers_missing = flushes ? 2 : 1;
  request->moved = 0;
  request->flushed = 0;
  request->flush_unlinked = false;
  ++in_flight_;
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
  submitted(static_cast<std::size_t>(rc));
  if (!unsubmitted_.empty()) submit_soon();
}

// The kernel has taken `count` entries, in their order.
void IoRing::submitted(std::size_t count) {
  CHECK(count <= unsubmitted_.size());
  unanswered_ += count;
  unsubmitted_.erase(unsubmitted_.begin(),
                     unsubmitted_.begin() + static_cast<std::ptrdiff_t>(count));
  if (unsubmitted_.empty() || (unsubmitted_.front() & kFlushBit) == 0) return;
  // Between a write and its flush. Until the flush is answered its request is there.
  reinterpret_cast<Request*>(unsubmitted_.front() & ~kFlushBit)->flush_unlinked = true;
}

void IoRing::answered(std::uint64_t tag, std::int64_t result) {
  auto* answered = reinterpret_cast<Request*>(tag & ~kFlushBit);
  CHECK(answered->answers_missing > 0 && unanswered_ > 0);
  --unanswered_;
  ((tag & kFlushBit) != 0 ? answered->flushed : answered->moved) = result;
  if (--answered->answers_missing > 0) return;
  CHECK(in_flight_ > 0);
  --in_flight_;
  std::unique_ptr<Request> request(answered);
  std::int64_t outcome = request->moved;
  if (request->kind == Kind::kWriteAndFlush) {
    std::int64_t expected = 0;
    for (const iovec& part : request->vectors) expected += static_cast<std::int64_t>(part.iov_len);
    if (outcome == expected) {
      if (request->flushed < 0) outcome = request->flushed;
      if (request->flushed >= 0 && request->flush_unlinked) outcome = -EAGAIN;
    }
  }
  Completion done = std::move(request->done);
  // Before the completion: it may need one.
  if (spare_.size() < ring_.sq.ring_entries) spare_.push_back(std::move(request));
  done(outcome);
}

void IoRing::reap() {
  for (;;) {
    io_uring_cqe* cqe = nullptr;
    if (io_uring_peek_cqe(&ring_, &cqe) != 0 || cqe == nullptr) break;
    const std::uint64_t tag = cqe->user_data;
    const std::int64_t result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    answered(tag, result);
  }
  start_waiting();
}

void IoRing::start_waiting() {
  while (!waiting_.empty() && prepare(waiting_.front().get())) {
    static_cast<void>(waiting_.front().release());
    waiting_.pop_front();
    submit_soon();
  }
}

void IoRing::wait() {
  submit();
  if (unanswered_ == 0) return;
  io_uring_cqe* cqe = nullptr;
  int rc = 0;
  do {
    rc = io_uring_wait_cqe(&ring_, &cqe);
  } while (rc == -EINTR);
  CHECK_MSG(rc == 0, "io_uring_wait_cqe");
  reap();
}

}  // namespace mariner::logging
