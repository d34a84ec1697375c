// Bitmaps and counts, against what is in use.
#pragma once

#include "ifsck/census_facts.h"
#include "proto/error.h"

namespace mariner::ifsck {

// After scan_inodes(). Errors: of the past alone.
[[nodiscard]] Result<void> check_allocation(CensusFacts& facts);

}  // namespace mariner::ifsck
