// What of a configuration that was read again is taken at once, and what waits for the next start.
// Of a standalone node.
#pragma once

#include <string>
#include <vector>

#include "server/node/config.h"

namespace mariner::node {

// The keys that need nothing else than their new value. (Accounts and volumes may be refused.)
void take_changes(Config& running, const Config& read);

// The keys, as "[log] on_full", in the order of marinerd.toml(5).
[[nodiscard]] std::vector<std::string> changes_for_next_start(const Config& running,
                                                              const Config& read);

}  // namespace mariner::node
