// The moment of a time, once nothing can come before it any more.
#pragma once

#include "replication/replicator.h"
#include "server/volume/history.h"

namespace mariner::volume {

// Makes `time` a moment: resolves it to the last write at or before it, once that is settled.
// kUnavailable when the log failed and it cannot settle before a restart, or `replicator` does not
// coordinate any more. The history stays until `done` has run; the replicator is not needed longer
// than it coordinates.
void settled_moment(replication::Replicator& replicator, History& history, VersionTime time,
                    History::MomentDone done);

}  // namespace mariner::volume
