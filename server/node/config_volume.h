// What is served: [[volume]] of the configuration.
#pragma once

#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

// Sets the volumes. The roles, the cluster and the accounts of `config` have been read.
void read_volumes(ConfigTable& root, ConfigProblems& problems, Config& config);

}  // namespace mariner::config
