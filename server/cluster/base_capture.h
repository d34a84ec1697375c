// Logs the base of blocks as before-images out of another node's image: for an image that is to
// hold something else there, or does already, and does not hold the base itself.
//
// What the other image holds is read, and then the history asked once more, which counts: where it
// calls that base still, the other node has not written there before it was read. Elsewhere it has
// logged the base by then, and nothing is to be done.
#pragma once

#include "server/volume/history_reader.h"

namespace mariner::cluster {

// The base of `range` is durable in the log when `done` says so; after an error some of it may be.
// At most History::kBeforeImageBlocksMax blocks. Both outlive what is under way.
void capture_base(volume::History& log, volume::Base& other, BlockRange range, volume::Done done);

}  // namespace mariner::cluster
