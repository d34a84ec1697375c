// Whether a file system's journal begins as one: a mount looks at that, and e2fsck does, even where
// nothing is to be replayed.
#pragma once

#include <functional>
#include <optional>

#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

// What is wrong with it (it says that it is larger than its blocks, too), a kInodeMap; nothing:
// nothing is, or the file system has none within itself, or its first block is not `wanted(block)`.
// Features that are not known are nothing wrong. Errors: of the past alone.
[[nodiscard]] Result<std::optional<Finding>> check_journal(
    const ExtContext& context, const std::function<bool(FsBlock)>& wanted);

}  // namespace mariner::ifsck
