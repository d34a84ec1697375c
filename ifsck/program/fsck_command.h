// The program `ifsck`, from its words to its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/units.h"
#include "server/client/console.h"
#include "server/client/sandbox.h"
#include "server/client/zone.h"

namespace mariner::ifsck {

// As client::run_command() is for `mariner`. 0: clean, or what was asked for is done; 10: something
// is wrong with the file system (it is mended, or not). `confine`: what
// Context::give_up() does.
[[nodiscard]] int run_fsck_command(const std::vector<std::string>& words, client::Console console,
                                   const Zone& zone, std::function<VersionTime()> now,
                                   client::Confine confine = {});

}  // namespace mariner::ifsck
