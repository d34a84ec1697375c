// What of a configuration that was read again waits for the next start. Of a standalone node.
#pragma once

#include <string>
#include <vector>

#include "server/node/config.h"

namespace mariner::node {

// Whether hosts are slowed for windows is decided at a start.
[[nodiscard]] bool needs_restart(OnFull running, OnFull read);

// The keys, as "[log] on_full", in the order of marinerd.toml(5).
[[nodiscard]] std::vector<std::string> changes_for_next_start(const Config& running,
                                                              const Config& read);

}  // namespace mariner::node
