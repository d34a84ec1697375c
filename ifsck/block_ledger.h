// Blocks, inodes and counts after a change: who claims what, whether the bitmaps say so, and
// whether the counts do.
//
// A block's claims are those that it had, less those of the changed inodes as they were, and more
// those as they are.
#pragma once

#include <functional>

#include "ifsck/baseline.h"
#include "ifsck/moment_change.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Tells `found` of what is wrong now, and `next` of what else is. Errors: of the past alone.
[[nodiscard]] Result<void> check_blocks(const MomentChange& change, BaselineChange& next,
                                        const std::function<void(const Finding&)>& found);

// Of these blocks alone (which are claimed now), which are claimed twice or a structure:
// kClaimedTwice and kClaimsStructure. It reads no bitmaps but those of their groups.
[[nodiscard]] Result<void> check_claims(const MomentChange& change, const BlockRanges& blocks,
                                        const std::function<void(const Finding&)>& found);

}  // namespace mariner::ifsck
