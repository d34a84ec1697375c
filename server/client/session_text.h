// Sessions in words: who will be affected by what is about to be done.
#pragma once

#include <functional>
#include <string>

#include "proto/admin.pb.h"

namespace mariner::client {

// "Affected: INITIATOR from ADDRESS (session 7)", a line each, of those that `concerns` picks.
[[nodiscard]] std::string sessions_text(const api::SessionList& sessions,
                                        const std::function<bool(const api::Session&)>& concerns);

[[nodiscard]] std::string session_line(const api::Session& session);

}  // namespace mariner::client
