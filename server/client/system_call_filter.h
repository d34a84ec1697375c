// seccomp: the system calls that a confined process may make.
#pragma once

#include "proto/error.h"
#include "server/client/sandbox.h"

namespace mariner::client {

// Of all threads of the process, for good; it cannot have other privileges by another program from
// then on. kIo: the kernel has no seccomp filters, or refuses this one.
[[nodiscard]] Result<void> filter_system_calls(SandboxRules::Files files);

}  // namespace mariner::client
