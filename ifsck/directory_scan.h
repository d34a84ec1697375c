// All directories: who is named by whom, whether each can be reached from the root, and whether
// inodes have as many names as they say.
#pragma once

#include "ifsck/census_facts.h"
#include "proto/error.h"

namespace mariner::ifsck {

// After scan_inodes(). Errors: of the past alone.
[[nodiscard]] Result<void> scan_directories(CensusFacts& facts);

}  // namespace mariner::ifsck
