#include "server/cluster/question_slots.h"

#include <algorithm>

#include "proto/check.h"
#include "server/cluster/remote_history.h"

namespace mariner::cluster {

bool QuestionSlots::free(RemoteHistory& asker) {
  if (taken_ < kMost) return true;
  if (std::ranges::find(waiting_, &asker) == waiting_.end()) waiting_.push_back(&asker);
  return false;
}

void QuestionSlots::give_back() {
  CHECK(taken_ > 0);
  --taken_;
  while (taken_ < kMost && !waiting_.empty()) {
    RemoteHistory* const next = waiting_.front();
    waiting_.pop_front();
    next->writable();
  }
}

// (Nobody is told: whoever waits is forgotten as well, because the connection has ended.)
void QuestionSlots::forget(RemoteHistory& asker, std::size_t under_way) {
  CHECK(taken_ >= under_way);
  taken_ -= under_way;
  std::erase(waiting_, &asker);
}

}  // namespace mariner::cluster
