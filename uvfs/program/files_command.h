// The program `uvfs`, from its words to its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/units.h"
#include "server/client/console.h"
#include "server/client/sandbox.h"
#include "server/client/zone.h"

namespace mariner::uvfs {

// As client::run_command() is for `mariner`. `confine`: what Context::give_up() does.
[[nodiscard]] int run_files_command(const std::vector<std::string>& words, client::Console console,
                                    const Zone& zone, std::function<VersionTime()> now,
                                    client::Confine confine = {});

}  // namespace mariner::uvfs
