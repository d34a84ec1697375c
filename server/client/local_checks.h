// What the doctor can see from outside the daemon, above all when there is none to ask.
#pragma once

#include <string>
#include <vector>

#include "proto/admin.pb.h"

namespace mariner::client {

struct LocalChecks {
  std::string config_path;
  std::string socket;
  bool daemon_answers = false;  // then ports are in use as they should be
};

// In the order in which a person would look.
[[nodiscard]] std::vector<api::Finding> local_findings(const LocalChecks& checks);

}  // namespace mariner::client
