#include "server/volume/slow_erase.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace mariner::volume {

void SlowErase::add(Job job) {
  jobs_.push_back(std::move(job));
  if (!std::exchange(goes_on_, true)) go_on();
}

void SlowErase::finish(const PendingTable& table) {
  std::deque<Job> others;
  std::deque<Job> its;
  for (Job& job : jobs_) (job.table.get() == &table ? its : others).push_back(std::move(job));
  jobs_ = std::move(others);
  for (Job& job : its) {
    erase(job, SIZE_MAX);
    if (job.done) job.done();
  }
}

// Jobs of a table follow one another.
std::uint64_t SlowErase::memory_bytes_beside(const PendingTable* table) const {
  std::uint64_t bytes = 0;
  const PendingTable* last = table;
  for (const Job& job : jobs_) {
    if (job.table.get() != last && job.table.get() != table) bytes += job.table->memory_bytes();
    last = job.table.get();
  }
  return bytes;
}

void SlowErase::go_on() {
  executor_.in_next_turn([this, alive = alive_] {
    if (*alive) erase_some();
  });
}

void SlowErase::erase_some() {
  UniqueFunction<void()> done;
  if (!jobs_.empty() && erase(jobs_.front(), runs_of_a_turn(jobs_.front().table->size()))) {
    done = std::move(jobs_.front().done);
    jobs_.pop_front();
  }
  goes_on_ = !jobs_.empty();
  if (goes_on_) go_on();
  if (done) done();  // last: it may end this
}

// True: all of it has left.
bool SlowErase::erase(Job& job, std::size_t runs_max) {
  const std::vector<BlockRange> gone = job.table->erase_before(job.end, runs_max);
  if (job.left && !gone.empty()) job.left(gone);
  return gone.size() < runs_max;
}

}  // namespace mariner::volume
