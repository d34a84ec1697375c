#include "server/admin/admin_server.h"

#include "server/admin/api_router.h"

namespace mariner::admin {
namespace {

// Of people and programs, and four of each reading of a past (client::PastClient).
constexpr std::size_t kConnectionsMax = 64 + 4 * 32;

}  // namespace

Result<std::unique_ptr<web::HttpServer>> open_admin_server(boost::asio::io_context& io,
                                                           const std::string& path,
                                                           Control& control) {
  return web::HttpServer::listen_unix(io, path, {.connections = kConnectionsMax},
                                      [&control](web::HttpRequest request, web::HttpReply reply) {
                                        route(std::move(request), std::move(reply), control);
                                      });
}

}  // namespace mariner::admin
