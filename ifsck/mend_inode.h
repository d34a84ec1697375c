// Inodes by themselves: their fields, and what they claim.
//
// A map loses what cannot be in it. Blocks that another inode claims, too, are copied for the one
// that is said to be later. The journal's inode is restored from the superblock's copy; what has
// nothing left that could be a file is released.
#pragma once

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// All findings about inodes by themselves, their claims, and attributes. Errors: of the past alone.
[[nodiscard]] Result<void> mend_inodes(MendWork& work);

// After a change of an inode's map: its size, if it cannot be, and its count of blocks; and it is
// written.
[[nodiscard]] Result<void> settle_inode(MendWork& work, InodeNumber number,
                                        std::span<std::byte> bytes);

}  // namespace mariner::ifsck
