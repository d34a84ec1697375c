#include "server/volume/settled_moment.h"

#include <string>
#include <utility>

namespace mariner::volume {

void settled_moment(replication::Replicator& replicator, History& history, VersionTime time,
                    History::MomentDone done) {
  const SequenceNumber stamped = replicator.coordinator().last_stamped();
  replicator.settle_moment(time, [&history, time, stamped,
                                  done = std::move(done)](Result<SequenceNumber> settled) mutable {
    if (!settled) return done(settled.error());
    if (*settled < stamped) {
      return done(
          Error{ErrorCode::kUnavailable,
                "the log failed with writes under way, and which of them it kept shows "
                "after a restart; a moment before them can be named by its number, up to #" +
                    std::to_string(settled->value)});
    }
    history.moment(time, std::move(done));
  });
}

}  // namespace mariner::volume
