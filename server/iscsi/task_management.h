// The task management functions (RFC 7143, 4.2.3.3 and 11.5-6): whom each one ends, and its answer.
#pragma once

#include <memory>

#include "server/iscsi/pdu.h"
#include "server/iscsi/session.h"
#include "server/iscsi/session_registry.h"

namespace mariner::iscsi {

// Carries out `request`, which came on this connection of `session`. Its victims, in this and in
// other sessions of the device, answer no more from now on; the response is sent when the device
// says that all they wrote is settled.
void manage_tasks(const std::shared_ptr<Session>& session, std::uint32_t connection,
                  const TaskManagementRequest& request, SessionRegistry& registry);

}  // namespace mariner::iscsi
