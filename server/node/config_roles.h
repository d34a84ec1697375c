// What a node does: `roles` of the configuration, and what depends on them.
#pragma once

#include <vector>

#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

// Empty: they are wrong, which has been noted, and nothing that depends on them can be checked.
std::vector<Role> read_roles(ConfigTable& root);

// Neither this nor standalone() is true while the roles are not known.
inline bool clustered(const Config& config) {
  return !config.roles.empty() && !config.standalone();
}

// Notes sections that a node with these roles does not use.
void check_sections(ConfigTable& root, const Config& config);

}  // namespace mariner::config
