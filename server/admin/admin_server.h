// The admin API on its unix socket.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "proto/error.h"
#include "server/admin/control.h"
#include "server/web/http_server.h"

namespace mariner::admin {

// Listens at the unix socket `path`; start() of what it returns begins to serve `control`, which
// outlives the server and is called on the thread that runs `io`. Errors as
// HttpServer::listen_unix().
[[nodiscard]] Result<std::unique_ptr<web::HttpServer>> open_admin_server(
    boost::asio::io_context& io, const std::string& path, Control& control);

}  // namespace mariner::admin
