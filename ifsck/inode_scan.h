// All inodes, and the blocks that they claim.
//
// However many inodes claim the same blocks, it ends: when more is claimed than twice what there
// is, the rest is not followed any more, and each of them is a finding.
#pragma once

#include "ifsck/census_facts.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Errors: of the past alone.
[[nodiscard]] Result<void> scan_inodes(CensusFacts& facts);

}  // namespace mariner::ifsck
