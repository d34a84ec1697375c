// How directories hang together, and who has a name: names that are too many go, circles are cut,
// and who has none is released if it is empty, and is in lost+found else.
#pragma once

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// All findings about the tree and links. Inodes and directories by themselves are right already.
// Errors: of the past alone.
[[nodiscard]] Result<void> mend_tree(MendWork& work);

}  // namespace mariner::ifsck
