#include "server/client/local_checks.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;

// What the checks find, a line each.
std::string found(const LocalChecks& checks) {
  std::string text;
  for (const auto& finding : local_findings(checks)) {
    text += finding.level() + " " + finding.check() + ": " + finding.found() + " -> " +
            finding.advice() + "\n";
  }
  return text;
}

class LocalChecksTest : public DaemonTest {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("mariner-lc-" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void configure(const std::string& server) {
    std::ofstream(file_) << "version = 1\nroles = ['standalone']\n[server]\n" << server;
  }
  std::filesystem::path file_;
};

TEST_F(LocalChecksTest, AMissingSocketAndFile) {
  const auto text = found({"/nonexistent/m.toml", "/nonexistent/admin.sock", false});
  EXPECT_THAT(text, HasSubstr("error configuration: /nonexistent/m.toml: cannot be opened"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "error socket: /nonexistent/admin.sock: No such file or directory -> start the daemon"));
  EXPECT_THAT(text, HasSubstr(" clock: "));
}

TEST_F(LocalChecksTest, WhatTheSocketIs) {
  EXPECT_THAT(found({"/x", socket, false}),
              HasSubstr("warning socket: the daemon accepts connections"));
  std::ofstream(file_) << "x";
  EXPECT_THAT(found({"/x", file_, false}), HasSubstr("is not a socket"));
}

TEST_F(LocalChecksTest, APortInUse) {
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto port = std::to_string(ntohs(address.sin_port));
  configure("portals = ['127.0.0.1:" + port +
            "', '192.0.2.1:3260', '[::1]:0']\nhttp = ''\nstate_dir = '/nonexistent/s'\n");
  const auto text = found({file_, "/nonexistent/s", false});
  ::close(taken);
  EXPECT_THAT(
      text,
      HasSubstr(
          "error port: 127.0.0.1:" + port +
          " (server.portals) is used by another program -> find it with: ss -ltnp 'sport = :" +
          port + "'"));
  EXPECT_THAT(
      text,
      HasSubstr("error port: 192.0.2.1:3260 (server.portals): Cannot assign requested address"));
  EXPECT_THAT(text, HasSubstr("/nonexistent/s (server.state_dir) is not a directory -> make it: "
                              "install -d -m 0700 /nonexistent/s"));
}

TEST_F(LocalChecksTest, WithADaemonOnlyTheConfigurationIsLookedAt) {
  configure("state_dir = '/tmp'\n");
  EXPECT_EQ(found({file_, socket, true}),
            "ok configuration: " + file_.string() + " is valid -> \n");
}

}  // namespace
}  // namespace mariner::client
