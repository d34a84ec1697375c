// Stands between the ring and the kernel: takes the place of liburing's io_uring_submit() in the
// program that it is linked into, counts what is offered to the kernel, and can play one that takes
// less than that.
#pragma once

#include <climits>
#include <cstddef>

namespace mariner::logging::test {

struct SubmitSpy {
  // How many entries the kernel takes at most with one submission.
  unsigned taken_at_most = UINT_MAX;
  // Entries seen since reset(), each counted once.
  std::size_t writes = 0;
  std::size_t forced_writes = 0;     // with RWF_DSYNC
  std::size_t linked_flushes = 0;    // fdatasync, linked behind a write
  std::size_t unlinked_flushes = 0;  // of any other kind
  std::size_t data_flushes = 0;      // fdatasync, linked or not

  void reset() { *this = SubmitSpy{}; }
};
SubmitSpy& submit_spy();

}  // namespace mariner::logging::test
