// The history of a volume while its log is away: what came since, this node's journal tells.
//
// It answers just what a storage node needs to serve and to catch up: what changed above `since`,
// and how it reads. Everything else is unavailable, so that the image stays as it is (whether it
// holds somebody's base only the log knows) and nobody opens a moment.
//
// Invariant: nothing comes from below `since`. The journal may hold older writes, of an earlier
// time without a log, and others that were never acknowledged and rolled back: of these it knows
// no better than the storage, which has everything at or below `since`. While this exists the
// journal keeps that moment.
//
// Owner's thread only. Answers may come when this is no more; the journal outlives them.
#pragma once

#include <memory>

#include "server/cluster/away_history.h"
#include "server/cluster/logger_part.h"

namespace mariner::cluster {

class JournalHistory final : public AwayHistory {
 public:
  JournalHistory(LoggerPart& journal, SequenceNumber since);

  // kUnavailable above what is settled in the journal, and where the log would be needed.
  // kCorrupt: `range` was not written since, so that nobody should have asked.
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override;
  // Not what reads at `to` as it did at `since`.
  void changed(SequenceNumber from, SequenceNumber to, Portion portion, volume::Done done) override;

 private:
  struct Filter;
  [[nodiscard]] Result<void> check(SequenceNumber at) const;

  LoggerPart& journal_;
  const SequenceNumber since_;
  // Shared with a hold that is still being made. An error: the journal has given `since` up.
  const std::shared_ptr<Result<Hold>> held_;
};

}  // namespace mariner::cluster
