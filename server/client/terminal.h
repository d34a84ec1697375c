// This process's terminal and clock, for a command's main program.
#pragma once

#include "proto/units.h"
#include "server/client/console.h"

namespace mariner::client {

// Standard input and output. Colors unless NO_COLOR or TERM speak against them.
[[nodiscard]] Console process_console();
[[nodiscard]] VersionTime system_now();
// What could not be written was not answered: a full disk must not look like success.
[[nodiscard]] int flushed(int exit_code);

}  // namespace mariner::client
