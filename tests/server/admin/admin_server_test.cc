#include "server/admin/admin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/server/admin/fake_control.h"
#include "tests/server/web/raw_client.h"

namespace mariner::admin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(AdminServer, ServesControlOnItsSocket) {
  const auto path =
      (std::filesystem::temp_directory_path() / ("mariner-admin-" + std::to_string(getpid())))
          .string();
  web::ServerThread thread;
  FakeControl control;
  control.status_answer.set_version("1.2.3");
  control.import_progress = {{1, 2}};
  std::unique_ptr<web::HttpServer> server;
  thread.run([&] {
    server = *open_admin_server(thread.io, path, control);
    return 0;
  });
  {
    web::RawClient client(path);
    client.send("GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_FALSE(client.readable(std::chrono::milliseconds(50))) << "not before it is started";
    thread.run([&] {
      server->start();
      return 0;
    });
    EXPECT_THAT(client.receive(), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                        HasSubstr("Content-Type: application/json\r\n"),
                                        HasSubstr("\"version\":\"1.2.3\"")));
  }
  {
    web::RawClient client(path);
    client.send("POST /v1/volumes/a/import HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(client.receive(),
                AllOf(HasSubstr("Transfer-Encoding: chunked"), HasSubstr("\"done_bytes\":\"1\""),
                      HasSubstr("\"name\":\"a\"")));
  }
  thread.run([&] {
    server.reset();
    return 0;
  });
}

}  // namespace
}  // namespace mariner::admin
