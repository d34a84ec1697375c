// The `mariner` command, from its words to its exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/units.h"
#include "server/client/console.h"
#include "server/client/context.h"
#include "server/client/zone.h"

namespace CLI {
class App;
}

namespace mariner::client {

// The application with all its nouns, verbs and flags, which write into `context`.
[[nodiscard]] std::shared_ptr<CLI::App> make_app(Context& context);

// Runs the command with `words` (without the program's name); returns the exit code. Everything
// it prints goes to `console`, whose color and quiet the flags settle: color is used if it is set
// and the output is a terminal.
[[nodiscard]] int run_command(const std::vector<std::string>& words, Console console,
                              const Zone& zone, std::function<VersionTime()> now);

}  // namespace mariner::client
