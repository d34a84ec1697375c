// What is made from all the rest: bitmaps, counts, and their checksums.
#pragma once

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// All findings that are derived. Errors: of the past alone.
[[nodiscard]] Result<void> mend_allocation(MendWork& work);

// Descriptors whose checksums are wrong, or that have an inode with a name among those that were
// never used (a kernel without a journal may have written names and inodes, and not yet them): what
// they say of what was never used is not believed any more. True: they have said so, and all else
// is to be looked at again.
[[nodiscard]] Result<bool> mend_descriptors(MendWork& work);

}  // namespace mariner::ifsck
