#include "server/client/session_text.h"

#include <fmt/format.h>

#include "server/client/console.h"

namespace mariner::client {

std::string session_line(const api::Session& session) {
  return fmt::format("Affected: {} from {} (session {})\n", printable(session.initiator()),
                     printable(session.address()), session.id());
}

std::string sessions_text(const api::SessionList& sessions,
                          const std::function<bool(const api::Session&)>& concerns) {
  std::string text;
  for (const auto& session : sessions.sessions()) {
    if (concerns(session)) text += session_line(session);
  }
  return text;
}

}  // namespace mariner::client
