// An inode's block map made anew, of what it is to have: numbers of blocks, or a tree of extents,
// whichever the inode has.
#pragma once

#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// `runs` ascend without overlap. Blocks of `nodes` are used again, for the same where they can be;
// where there are too few, others are allocated, and where there are none, the contents that need
// them are left out. The inode's i_block changes in `inode`, which the caller writes.
[[nodiscard]] Result<void> write_map(MendWork& work, InodeNumber number, std::span<std::byte> inode,
                                     std::span<const BlockMap::Run> runs,
                                     std::span<const BlockMap::Node> nodes);

}  // namespace mariner::ifsck
