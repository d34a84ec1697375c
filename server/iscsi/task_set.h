// The order of a session's commands by their task attributes (SAM-5 8.6): an ORDERED one begins
// when all before it have ended, and what comes after it begins when it has.
//
// Commands enter in the order of their CmdSN and form groups; those of the first group may be
// carried out, in any order (QUEUE ALGORITHM MODIFIER 1h). Without ORDERED and HEAD OF QUEUE there
// is one group. Bounded by the window: two groups for each command, and one.
//
// The set is a session's, of all its LUNs. Across sessions SAM's one task set orders nothing more
// that anybody could see: of two commands of two initiators that are under way at a time, neither
// knows which is the older one, and what was answered has ended. And so nobody who withholds a
// command's data makes another initiator wait.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/check.h"
#include "server/iscsi/pdu.h"

namespace mariner::iscsi {

class TaskSet {
 public:
  using Group = std::uint64_t;

  // A command that enters now would begin at once.
  [[nodiscard]] bool would_begin(TaskAttribute attribute) const {
    if (attribute == TaskAttribute::kHeadOfQueue) return true;
    return counts_.size() == 1 && (attribute != TaskAttribute::kOrdered || counts_.back() == 0);
  }
  // The group of a command that enters; until leave(). One at the HEAD OF QUEUE begins at once,
  // whatever its group: it only makes those behind it wait.
  [[nodiscard]] Group enter(TaskAttribute attribute) {
    if (attribute == TaskAttribute::kOrdered && counts_.back() != 0) counts_.push_back(0);
    ++counts_.back();
    const Group group = first_ + counts_.size() - 1;
    const bool parts =
        attribute == TaskAttribute::kOrdered || attribute == TaskAttribute::kHeadOfQueue;
    if (parts) counts_.push_back(0);
    return group;
  }
  // Of a group that may be carried out: it stays so.
  [[nodiscard]] bool enabled(Group group) const { return group == first_; }
  [[nodiscard]] Group first() const { return first_; }

  void leave(Group group) {
    const std::size_t at = group - first_;
    CHECK(at < counts_.size() && counts_[at] > 0);
    --counts_[at];
    if (counts_.size() > 1) close_ended();
  }

 private:
  void close_ended() {
    std::size_t ended = 0;
    while (ended + 1 < counts_.size() && counts_[ended] == 0) ++ended;
    counts_.erase(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(ended));
    first_ += ended;
  }

  Group first_ = 0;
  std::vector<std::uint32_t> counts_{0};  // commands of each group; the last one is open
};

}  // namespace mariner::iscsi
