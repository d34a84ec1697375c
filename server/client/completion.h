// Completion of the command's words, for bash, zsh and fish. The shells' scripts only ask
// `mariner __complete WORDS...`; what fits is found here, from the application itself and from
// the daemon.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/client/context.h"

namespace mariner::client {

// What may stand in place of the last of `words`, which is what has been typed of it. Volumes,
// marks, views and sessions are asked of the daemon; without one there are none. Sorted.
[[nodiscard]] std::vector<std::string> completions(const CLI::App& app,
                                                   const std::vector<std::string>& words,
                                                   const std::string& socket);

// The script of "bash", "zsh" or "fish"; empty for any other.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace mariner::client
