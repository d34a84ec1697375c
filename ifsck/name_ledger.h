// Names after a change: whether each inode has as many as it says, and each directory one, that can
// be reached from the root.
//
// An inode's names are those that it had, less those in the changed blocks of directories as they
// were, and more those as they are. What is wrong with entries that have not changed (what they
// name has) is found without telling in which directory they are.
#pragma once

#include <functional>

#include "ifsck/finding.h"
#include "ifsck/moment_change.h"
#include "ifsck/recheck_memory.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Tells `found` of what is wrong now. What is known of directories is taken from `memory`, which is
// begun, and kept there. Errors: of the past alone.
[[nodiscard]] Result<void> check_names(const MomentChange& change, RecheckMemory& memory,
                                       const std::function<void(const Finding&)>& found);

}  // namespace mariner::ifsck
