// How nodes of a cluster know each other: [cluster] of the configuration.
#pragma once

#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

// Sets the cluster. The roles of `config` have been read.
void read_cluster(ConfigTable table, ConfigProblems& problems, Config& config);

}  // namespace mariner::config
