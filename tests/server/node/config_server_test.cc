#include "server/node/config_server.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

ConfigReading read(const std::string& text) {
  return parse_config("version = 1\nroles = ['standalone']\n" + text, "m.toml");
}

// The first problem, or "".
std::string problem(const std::string& text) {
  const ConfigReading reading = read(text);
  return reading.problems.empty() ? "" : to_string(reading.problems.front());
}

TEST(ConfigServer, PortalGroups) {
  const ConfigReading reading = read(R"(
[server]
portals = ["192.0.2.1:3260"]
[[server.portal_group]]
tag = 7
portals = ["[2001:db8::1]:3260"]
[[server.portal_group]]
tag = 2
portals = ["192.0.2.2:3260", "192.0.2.3:3260"]
)");
  ASSERT_TRUE(reading.config) << to_string(reading.problems.front());
  const ServerConfig& server = reading.config->server;
  EXPECT_EQ(server.portals.size(), 1u);
  ASSERT_EQ(server.portal_groups.size(), 2u);
  EXPECT_EQ(server.portal_groups[0].tag, 2) << "in order";
  EXPECT_EQ(server.portal_groups[0].portals.size(), 2u);
  EXPECT_EQ(server.portal_groups[1].tag, 7);
}

TEST(ConfigServer, WrongPortalGroups) {
  const std::string group = "[[server.portal_group]]\n";
  const std::string portals = "portals = ['192.0.2.2:3260']\n";
  const auto has = [](const std::string& found, std::string_view expected) {
    EXPECT_NE(found.find(expected), std::string::npos) << found;
  };
  has(problem(group + portals), "server.portal_group.tag: missing");
  has(problem(group + "tag = 1\n" + portals), "expected 2 to 65535");
  has(problem(group + "tag = 65536\n" + portals), "expected 2 to 65535");
  has(problem(group + "tag = 2\n"), "server.portal_group.portals: missing");
  has(problem(group + "tag = 2\nportals = []\n"), "empty");
  has(problem(group + "tag = 2\n" + portals + group + "tag = 2\nportals = ['192.0.2.3:1']\n"),
      "there are two portal groups 2");
  has(problem(group + "tag = 2\nportals = ['0.0.0.0:3260']\n"), "stands in another group, too");
  has(problem(group + "tag = 2\nname = 'x'\n" + portals), "unknown key");
}

TEST(ConfigServer, BusyPolling) {
  EXPECT_EQ(read("").config->server.busy_poll, std::nullopt) << "as suits the machine";
  EXPECT_EQ(read("[server]\nbusy_poll = 'auto'\n").config->server.busy_poll, std::nullopt);
  EXPECT_EQ(read("[server]\nbusy_poll = '0s'\n").config->server.busy_poll,
            std::chrono::nanoseconds(0));
  EXPECT_EQ(read("[server]\nbusy_poll = '50us'\n").config->server.busy_poll,
            std::chrono::microseconds(50));
  EXPECT_NE(problem("[server]\nbusy_poll = '2ms'\n").find("expected at most 1ms, found 2ms"),
            std::string::npos);
  EXPECT_NE(problem("[server]\nbusy_poll = 'on'\n").find("expected \"auto\" or a duration: "),
            std::string::npos);
}

TEST(ConfigServer, SocketThreads) {
  const ServerConfig defaults = read("").config->server;
  EXPECT_EQ(defaults.socket_threads, std::nullopt);
  EXPECT_EQ(defaults.socket_threads_load, 0.9);
  const ServerConfig set =
      read("[server]\nsocket_threads = '4'\nsocket_threads_load = '0%'\n").config->server;
  EXPECT_EQ(set.socket_threads, 4u);
  EXPECT_EQ(set.socket_threads_load, 0);
  EXPECT_EQ(read("[server]\nsocket_threads = 'auto'\n").config->server.socket_threads,
            std::nullopt);
  EXPECT_EQ(read("[server]\nsocket_threads = '0'\n").config->server.socket_threads, 0u);
  for (const std::string bad : {"65", "-1", "4x", ""}) {
    const std::string expected = "expected \"auto\" or \"0\" to \"64\", found \"" + bad + "\"";
    EXPECT_NE(problem("[server]\nsocket_threads = '" + bad + "'\n").find(expected),
              std::string::npos);
  }
  EXPECT_NE(problem("[server]\nsocket_threads_load = '101%'\n"), "");
}

TEST(ConfigServer, MachinesWithFewProcessorsHaveNoSocketThreads) {
  EXPECT_EQ(default_socket_threads(1), 0u);
  EXPECT_EQ(default_socket_threads(3), 0u);
  EXPECT_EQ(default_socket_threads(4), 1u);
  EXPECT_EQ(default_socket_threads(16), 4u);
  EXPECT_EQ(default_socket_threads(128), 8u);
}

TEST(ConfigServer, LimitsOfSessions) {
  const ServerConfig defaults = read("").config->server;
  EXPECT_EQ(defaults.sessions_max, 1024u);
  EXPECT_EQ(defaults.sessions_per_initiator_max, 512u);
  EXPECT_EQ(defaults.initiator_memory.bytes, 256u << 20);
  const ServerConfig set =
      read("[server]\nsessions_max = 100\ninitiator_memory = '64M'\n").config->server;
  EXPECT_EQ(set.sessions_max, 100u);
  EXPECT_EQ(set.sessions_per_initiator_max, 100u) << "not more than all";
  EXPECT_EQ(set.initiator_memory.bytes, 64u << 20);
  EXPECT_NE(problem("[server]\nsessions_max = 0\n"), "");
  EXPECT_NE(problem("[server]\nsessions_max = 65535\n"), "");
  EXPECT_NE(problem("[server]\nsessions_per_initiator_max = 0\n"), "");
  EXPECT_NE(problem("[server]\ninitiator_memory = '1M'\n"), "");
}

TEST(ConfigServer, ARedirectionOfAVolume) {
  const std::string volume = "[[volume]]\nname = 'db1'\nsize = '1G'\n";
  const auto config =
      read(volume + "redirect = '192.0.2.9:3260,1'\nredirect_permanent = true\n").config;
  ASSERT_TRUE(config);
  EXPECT_EQ(config->volumes[0].redirect, "192.0.2.9:3260");
  EXPECT_TRUE(config->volumes[0].redirect_permanent);
  EXPECT_NE(problem(volume + "redirect = '0.0.0.0:3260'\n"), "");
  EXPECT_NE(problem(volume + "redirect_permanent = true\n"), "");
  EXPECT_NE(problem(volume + "redirect = '192.0.2.9:3260'\nredirect_permanent = 'yes'\n"), "");
}

}  // namespace
}  // namespace mariner
