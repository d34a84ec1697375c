#include "server/admin/admin_server.h"

#include "server/admin/api_router.h"

namespace mariner::admin {

Result<std::unique_ptr<web::HttpServer>> open_admin_server(boost::asio::io_context& io,
                                                           const std::string& path,
                                                           Control& control) {
  return web::HttpServer::listen_unix(io, path, {},
                                      [&control](web::HttpRequest request, web::HttpReply reply) {
                                        route(std::move(request), std::move(reply), control);
                                      });
}

}  // namespace mariner::admin
