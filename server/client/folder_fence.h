// Landlock: files are opened, made and removed in one folder only.
#pragma once

#include "proto/error.h"
#include "server/client/sandbox.h"

namespace mariner::client {

// Of the calling thread and those that it begins, for good. Before that the process has set
// PR_SET_NO_NEW_PRIVS. A kernel without Landlock, or with one that knows no links between folders
// (before 5.19), is left alone: false. kIo.
[[nodiscard]] Result<bool> fence_folder(const SandboxRules& rules);

}  // namespace mariner::client
