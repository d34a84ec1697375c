// Who may come, and where: [auth] and [server] of the configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/node/config.h"
#include "server/node/config_table.h"

namespace mariner::config {

std::vector<AuthConfig> read_auth(const toml::table& tables, ConfigProblems& problems);

// The accounts that `key` names, one or several; each has to be among `accounts`.
std::vector<std::string> read_auth_names(ConfigTable& table, std::string_view key,
                                         const std::vector<AuthConfig>& accounts);

void read_server(ConfigTable table, const std::vector<AuthConfig>& accounts,
                 ConfigProblems& problems, ServerConfig& server);

}  // namespace mariner::config
