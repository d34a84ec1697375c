// What waits for a log disk, and in which order it goes.
//
// First what comes back from a disk, in the order of the log. Then what is new, in turns: each has
// kTurnBytes of each volume that has so much, in the order in which they came. So the records of a
// volume go as they came, and so do all as long as no volume has more waiting than a turn; one that
// writes much holds another one up for a turn and not for all that it has queued. What a record is
// longer than was left of its turn its volume's next ones make good.
//
// Owner's thread only. Appending a record costs a look into a map of the volumes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "logging/log_batch.h"

namespace mariner::logging {

// What the log keeps of a volume's base, and what has no place in the volume's order.
[[nodiscard]] bool is_base(const PendingRecord& pending);

class WaitingRecords {
 public:
  static constexpr std::uint64_t kTurnBytes = 256 << 10;

  [[nodiscard]] bool empty() const { return first_.empty() && returned_.empty() && now_.empty(); }
  // Not empty. The same until pop_front() or one of those below that say so.
  [[nodiscard]] PendingRecord& front();
  [[nodiscard]] const PendingRecord& front() const {
    return const_cast<WaitingRecords*>(this)->front();
  }
  void pop_front();

  void push_back(PendingRecord record);
  // Records that a disk was to write, and did not: by their ordinals before all that is new. May
  // change front().
  void put_back(std::deque<PendingRecord> records);
  // Behind what came back, before all that is new.
  void push_before_new(PendingRecord record) { returned_.push_back(std::move(record)); }
  // What the log keeps of the volumes' bases goes before all else. Whether there is any.
  bool base_first();

  // Takes out what may not use the log's reserve; everything.
  [[nodiscard]] std::deque<PendingRecord> take_ordinary();
  [[nodiscard]] std::deque<PendingRecord> take_all();

 private:
  struct Share {
    std::uint64_t turn = 0;   // of its next record
    std::uint64_t bytes = 0;  // that it has in that turn already
  };

  void next_turn();
  // Moves what `chosen` says to the end of `to`.
  template <typename Chosen>
  void extract(std::deque<PendingRecord>& to, Chosen chosen);

  std::deque<PendingRecord> first_;
  std::deque<PendingRecord> returned_;
  std::uint64_t turn_ = 0;
  std::deque<PendingRecord> now_;  // of this turn; not empty if there are any of later ones
  std::map<std::uint64_t, std::deque<PendingRecord>> later_;  // by turn; none empty
  std::map<VolumeId, Share> shares_;                          // of every volume that ever had one
};

}  // namespace mariner::logging
