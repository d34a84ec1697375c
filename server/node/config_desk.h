// The configuration of a running daemon: compared with another one, and read again. Loop's thread.
#pragma once

#include <string>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/node/daemon.h"
#include "server/node/log.h"

namespace mariner::node {

// What would change if the daemon read `request`'s text in place of `file`. kInvalidArgument: it is
// no configuration, with all that is wrong with it.
[[nodiscard]] Result<api::ConfigChanges> compare_config(const Daemon& daemon,
                                                        const std::string& file,
                                                        const api::ConfigCompareRequest& request);

// Reads `file`, and lets the daemon take what can be taken while it runs. Logs what is wrong, what
// waits for the next start, and what is not taken. kInvalidArgument: the file has errors, and all
// stays as it was. Other errors are those of Daemon::reload: what could be taken was.
Result<api::ConfigChanges> reload_config(Daemon& daemon, const std::string& file, Log& log);

// Logs every problem of a reading, as what it is.
void log_problems(const ConfigReading& reading, Log& log);

}  // namespace mariner::node
