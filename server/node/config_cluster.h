// How nodes of a cluster know each other: [cluster] of the configuration.
#pragma once

#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

void read_cluster(ConfigTable table, ClusterConfig& cluster);

}  // namespace mariner::config
