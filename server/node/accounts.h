// The accounts of initiators: what the configuration says, with the secrets from their files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/iscsi/chap.h"
#include "server/node/config.h"

namespace mariner::node {

using Accounts = std::map<std::string, iscsi::ChapAccount>;  // by their names in the configuration

// Reads the secrets. kInvalidArgument, kNotFound, ...: names the account and its file, what is
// wrong with it and what to do. Blocking, shortly.
Result<Accounts> load_accounts(const std::vector<AuthConfig>& accounts);

}  // namespace mariner::node
