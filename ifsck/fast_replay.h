// Replay of fast commits: names, ranges of blocks and inodes are put into the file system.
//
// Operation by operation with libext2fs, then the bitmaps of the groups that it has touched. (A
// mount does it with the allocator of its own; which blocks a directory grows by, or the nodes of
// extents, may be others.) It can be done again: what is there already is left alone.
#pragma once

#include <span>

#include "ifsck/ext_layout.h"
#include "ifsck/ext_volume.h"
#include "ifsck/fast_commit.h"
#include "proto/error.h"

namespace mariner::ifsck {

// `volume` is writable. Bounds: directories are read through for each name; kLimit: more than
// 4 Mi blocks of them in all, or ranges that add or describe more than 16 Mi blocks or extents.
// kCorrupt: an operation cannot be done. kInvalidArgument: the file system has features that are
// not understood here. kNoSpace. Others: as the past says.
[[nodiscard]] Result<void> replay_fast_commits(const ExtVolume& volume, const ExtLayout& layout,
                                               std::span<const FastOperation> operations);

}  // namespace mariner::ifsck
