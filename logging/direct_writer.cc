#include "logging/direct_writer.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "proto/check.h"

namespace mariner::logging {
namespace {

// Completions that are waited for together, while there is more to write.
constexpr unsigned kAnswersAtATime = DirectWriter::kWritesAtATime / 8;

bool is_aligned(const Disk::Write& write) {
  return write.offset % kBlockBytes == 0 &&
         std::ranges::all_of(write.parts, [](const ConstBytes& part) {
           return reinterpret_cast<std::uintptr_t>(part.data()) % kBlockBytes == 0 &&
                  part.size() % kBlockBytes == 0;
         });
}

}  // namespace

// By way of /proc: the file's name may be another one's by now.
Result<std::unique_ptr<DirectWriter>> DirectWriter::open(int file) {
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const int direct = ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (direct < 0) return errno_error(errno, path + ": open past the page cache");
  std::unique_ptr<DirectWriter> writer(new DirectWriter(direct));
  const int rc = io_uring_queue_init(kWritesAtATime, &writer->ring_, 0);
  if (rc < 0) return errno_error(-rc, "cannot set up io_uring");
  writer->initialised_ = true;
  return writer;
}

DirectWriter::~DirectWriter() {
  CHECK(under_way_ == 0);
  if (initialised_) io_uring_queue_exit(&ring_);
  ::close(file_);
}

std::vector<std::size_t> DirectWriter::write(std::span<const Disk::Write> writes) {
  std::vector<std::size_t> failed;
  std::vector<std::vector<iovec>> vectors(writes.size());
  std::vector<std::int64_t> expected(writes.size());
  for (std::size_t next = 0; next < writes.size() || under_way_ > 0;) {
    for (; next < writes.size() && under_way_ < kWritesAtATime; ++next) {
      const Disk::Write& write = writes[next];
      if (write.parts.size() > IOV_MAX || !is_aligned(write)) {
        failed.push_back(next);
        continue;
      }
      for (const ConstBytes& part : write.parts) {
        vectors[next].push_back({const_cast<std::byte*>(part.data()), part.size()});
        expected[next] += static_cast<std::int64_t>(part.size());
      }
      // The kernel writes one after the other where it has first to drop what is cached.
      static_cast<void>(::posix_fadvise(file_, static_cast<off_t>(write.offset), expected[next],
                                        POSIX_FADV_DONTNEED));
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      CHECK(entry != nullptr);  // there are as many as may be under way
      io_uring_prep_writev(entry, file_, vectors[next].data(),
                           static_cast<unsigned>(vectors[next].size()), write.offset);
      io_uring_sqe_set_data64(entry, next);
      ++under_way_;
    }
    const unsigned answers =
        next < writes.size() ? std::min(kAnswersAtATime, under_way_) : under_way_;
    const int rc = io_uring_submit_and_wait(&ring_, answers);
    // Short of memory, or interrupted: what was not taken is offered again.
    CHECK(rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
    reap(expected, failed);
  }
  return failed;
}

void DirectWriter::reap(std::span<const std::int64_t> expected, std::vector<std::size_t>& failed) {
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_, &entry) == 0) {
    const std::size_t which = entry->user_data;
    if (entry->res != expected[which]) failed.push_back(which);
    io_uring_cqe_seen(&ring_, entry);
    --under_way_;
  }
}

}  // namespace mariner::logging
