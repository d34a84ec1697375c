// Who may come, and where: [auth] and [server] of the configuration.
#pragma once

#include <fmt/format.h>

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

// Parsers of values.
Result<std::string> absolute_path(std::string_view text);
// A parser of sizes within [min, max].
inline auto size_between(ByteSize min, ByteSize max) {
  return [min, max](std::string_view text) -> Result<ByteSize> {
    auto size = parse_size(text);
    if (size && (*size < min || *size > max)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("expected {} to {}, found {}", format_size(min.bytes),
                               format_size(max.bytes), format_size(size->bytes))};
    }
    return size;
  };
}

}  // namespace mariner::config
