#include "tests/logging/submit_spy.h"

#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>

namespace mariner::logging::test {
namespace {

const io_uring_sqe& entry(const io_uring& ring, unsigned position) {
  return ring.sq.sqes[position & ring.sq.ring_mask];
}

bool is_link_to_flush(const io_uring_sqe& write, const io_uring_sqe& flush) {
  return write.opcode == IORING_OP_WRITEV && (write.flags & IOSQE_IO_LINK) != 0 &&
         write.fd == flush.fd && flush.fsync_flags == IORING_FSYNC_DATASYNC;
}

// Entries [first, end), of which those before `first` were taken already.
void look(const io_uring& ring, unsigned first, unsigned end) {
  SubmitSpy& spy = submit_spy();
  for (unsigned i = first; i != end; ++i) {
    const io_uring_sqe& sqe = entry(ring, i);
    if (sqe.opcode == IORING_OP_WRITEV) {
      ++spy.writes;
      if ((sqe.rw_flags & RWF_DSYNC) != 0) ++spy.forced_writes;
    } else if (sqe.opcode == IORING_OP_FSYNC) {
      const bool linked = i != first && is_link_to_flush(entry(ring, i - 1), sqe);
      ++(linked ? spy.linked_flushes : spy.unlinked_flushes);
      if (sqe.fsync_flags == IORING_FSYNC_DATASYNC) ++spy.data_flushes;
    }
  }
}

}  // namespace

SubmitSpy& submit_spy() {
  static SubmitSpy spy;
  return spy;
}

}  // namespace mariner::logging::test

extern "C" int io_uring_submit(io_uring* ring) {
  using mariner::logging::test::submit_spy;
  const unsigned head = ring->sq.sqe_head;
  const unsigned tail = ring->sq.sqe_tail;
  ring->sq.sqe_tail = head + std::min(tail - head, submit_spy().taken_at_most);
  mariner::logging::test::look(*ring, head, ring->sq.sqe_tail);
  const int rc = io_uring_submit_and_wait(ring, 0);
  ring->sq.sqe_tail = tail;
  return rc;
}
