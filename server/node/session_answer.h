// A session as the admin API tells of it.
#pragma once

#include <chrono>
#include <vector>

#include "proto/admin.pb.h"
#include "proto/executor.h"
#include "server/iscsi/session.h"

namespace mariner::node {

// All but what it uses: its target is of a volume, or of a view.
[[nodiscard]] api::Session session_answer(const iscsi::SessionInfo& session,
                                          const Executor& executor);

// Whether one of the sessions used its target a moment ago.
[[nodiscard]] bool in_use(const std::vector<iscsi::SessionInfo>& sessions,
                          std::chrono::nanoseconds now);

}  // namespace mariner::node
