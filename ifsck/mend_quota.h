// Quota files that are part of the file system (the feature quota): what is in use is counted, and
// they say it.
//
// No check looks at them: counting takes all inode tables, where there is such a feature.
#pragma once

#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

// True: something was changed, and is to be checked again. Nothing else is wrong. Limits stay.
// Errors: of the past alone.
[[nodiscard]] Result<bool> mend_quotas(MendWork& work);

}  // namespace mariner::ifsck
