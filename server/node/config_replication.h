// How writes go to the nodes that are to have them: [replication] of the configuration.
#pragma once

#include <string_view>

#include "proto/error.h"
#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

// "239.192.7.1:6003": what trm::check_group() takes.
Result<trm::Group> parse_group(std::string_view text);

// Sets the replication. Roles and cluster of `config` have been read.
void read_replication(ConfigTable& root, ConfigProblems& problems, Config& config);

}  // namespace mariner::config
