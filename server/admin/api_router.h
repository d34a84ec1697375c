// The admin API without sockets: finds what an HTTP request asks for, reads it into a message of
// proto/admin.proto, has Control do it, and answers. Paths and statuses: API.md.
#pragma once

#include "proto/error.h"
#include "server/admin/control.h"
#include "server/web/http_message.h"

namespace mariner::admin {

// Answers `reply` once, now or later. `control` outlives the reply.
void route(web::HttpRequest request, web::HttpReply reply, Control& control);

// The HTTP status that an error is answered with.
[[nodiscard]] int http_status(ErrorCode code);

}  // namespace mariner::admin
