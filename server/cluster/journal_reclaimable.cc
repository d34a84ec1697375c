#include "server/cluster/journal_reclaimable.h"

#include <algorithm>

namespace mariner::cluster {

std::optional<SequenceNumber> JournalReclaimable::oldest_pinned() const {
  const volume::LoggedVolume& logged = journal_.logged();
  return logged.oldest_pinned();
}

std::optional<SequenceNumber> JournalReclaimable::spare_through() const {
  SequenceNumber spare = std::min(settled(), image_durable_());
  if (const auto pinned = oldest_pinned()) spare = std::min(spare, *pinned);
  return spare;
}

// Nobody keeps anything in an image for a journal's sake.
void JournalReclaimable::punch(std::vector<BlockRange> /*ranges*/, volume::Done done) { done({}); }

}  // namespace mariner::cluster
