// Orphans: inodes that were deleted while they were open, or whose blocks were being cut off, when
// their machine stopped. They are in a list that begins in the superblock and goes on in the times
// of deletion, or in a file (the feature orphan_file).
//
// What was deleted is not in use any more, and of what was cut off the end goes, as a mount and
// e2fsck do it. The bitmaps and counts still have their blocks: these are for mending.
#pragma once

#include <cstdint>

#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct Orphans {
  std::uint64_t released = 0;  // were deleted
  std::uint64_t cut = 0;
};

// Of a file system whose journal is replayed. Afterwards there are none. An entry that cannot be
// ends its list: what is behind it was not done, and is found by a check. Not `believed`, as where
// the file system says that it has errors: none is done. Errors as of ExtVolume::open() and
// ExtLayout::of().
[[nodiscard]] Result<Orphans> release_orphans(View& view, bool believed);

}  // namespace mariner::ifsck
