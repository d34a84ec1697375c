// Directories: their blocks, holes, "." and "..", and entries.
//
// A block that is none of a directory ends behind its last good entry, and is empty if it has none.
// An index goes where blocks are changed that it may describe: it is not needed, and names that go
// leave it as it is.
#pragma once

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// All findings about what is in directories. Errors: of the past alone.
[[nodiscard]] Result<void> mend_directories(MendWork& work);

}  // namespace mariner::ifsck
