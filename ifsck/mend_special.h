// Inodes that are the file system's own, and can be made anew: the journal's, and the one that
// keeps blocks for more group descriptors.
#pragma once

#include <functional>
#include <span>

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

[[nodiscard]] bool is_special_inode(const ExtContext& context, InodeNumber number);

// One of these, with what was found of it. `is_shared(block)`: another inode claims it, too. A
// journal that cannot be restored is given up. Errors: of the past alone.
[[nodiscard]] Result<void> mend_special_inode(MendWork& work, InodeNumber number,
                                              std::span<const Finding> findings,
                                              const std::function<bool(FsBlock)>& is_shared);

}  // namespace mariner::ifsck
