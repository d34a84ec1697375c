// The frame of a command-line program: flags that all of ours have, and the way from words to an
// exit code.
#pragma once

#include <string>
#include <vector>

#include "server/client/context.h"

namespace CLI {
class App;
}

namespace mariner::client {

// --version, --json (described by `json`), --quiet, --no-color and --socket, which may stand
// anywhere, for the application's verbs, of which one is required. They write into `context`.
void add_common_flags(CLI::App& app, Context& context, const std::string& json);

// Reads `words` (without the program's name), does what Context::action is then, and says what went
// wrong. Color is used if the console has it set, its output is a terminal, and no flag forbids it.
[[nodiscard]] int run_application(CLI::App& app, Context& context,
                                  const std::vector<std::string>& words);

}  // namespace mariner::client
