// Blocks, inodes and counts after a change: who claims what, whether the bitmaps say so, and
// whether the counts do.
//
// A block's claims are those that it had, less those of the changed inodes as they were, and more
// those as they are.
#pragma once

#include <cstddef>
#include <functional>

#include "ifsck/baseline.h"
#include "ifsck/moment_change.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Blocks that are claimed otherwise than before, of whose each 150 bytes are kept: 64 GiB of a file
// system with blocks of 4 KiB. A full check takes a bit for each block that there is.
inline constexpr std::size_t kClaimsMax = 16u << 20;

// Tells `found` of what is wrong now, and `next` of what else is. kInvalidArgument: more than
// `claims_max`; take a census. Others: of the past alone.
[[nodiscard]] Result<void> check_blocks(const MomentChange& change, BaselineChange& next,
                                        const std::function<void(const Finding&)>& found,
                                        std::size_t claims_max = kClaimsMax);

// Of these blocks alone (which are claimed now), which are claimed twice or a structure:
// kClaimedTwice and kClaimsStructure. It reads no bitmaps but those of their groups. Errors as
// above.
[[nodiscard]] Result<void> check_claims(const MomentChange& change, const BlockRanges& blocks,
                                        const std::function<void(const Finding&)>& found,
                                        std::size_t claims_max = kClaimsMax);

}  // namespace mariner::ifsck
