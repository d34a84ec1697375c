#include "server/node/config_replication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mariner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A node of a cluster; what follows begins on line 6.
ConfigReading read(const std::string& text, const std::string& listen = "'10.0.0.1:9862'") {
  return parse_config(
      "version = 1\nroles = ['target']\n"
      "cluster.etcd = ['10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.3:2379']\n"
      "cluster.node = [{id = 1, name = 'a', addresses = ['10.0.0.1:9862']}]\n"
      "cluster.listen = [" +
          listen + "]\n" + text,
      "m");
}

std::vector<std::string> problems(const ConfigReading& reading) {
  std::vector<std::string> all;
  for (const auto& problem : reading.problems) all.push_back(to_string(problem));
  return all;
}

constexpr const char* kMulticast =
    "[replication]\nmode = 'multicast'\ngroup = '239.192.7.1:6003'\n";

TEST(ConfigReplication, WhatIsWritten) {
  const ConfigReading reading =
      read(kMulticast +
           std::string("rate_limit = '800Mbit'\ninterface = '192.0.2.1'\nencrypt = false\n"));
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(problems(reading), IsEmpty());
  EXPECT_EQ(reading.config->replication, (ReplicationConfig{.multicast = true,
                                                            .group = {"239.192.7.1", 6003},
                                                            .rate_limit_bits = 800'000'000,
                                                            .interface = "192.0.2.1",
                                                            .encrypt = false}));
}

TEST(ConfigReplication, WithoutItWritesGoByUnicast) {
  const ConfigReading reading = read("");
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_EQ(reading.config->replication, ReplicationConfig{.interface = "10.0.0.1"})
      << "others may multicast to this node";
  EXPECT_FALSE(read("[replication]\nmode = 'unicast'\n").config->replication.multicast);
}

TEST(ConfigReplication, TheInterfaceIsWhereOthersReachThisNodeIfThatIsOneAddress) {
  const auto interface = [](const std::string& listen) {
    return read("", listen).config->replication.interface;
  };
  EXPECT_EQ(interface("'10.0.0.1:9862', '[fd00::1]:9862'"), "10.0.0.1");
  EXPECT_EQ(interface("'10.0.0.1:9862', '10.0.0.1:9863'"), "10.0.0.1");
  for (const char* listen : {"'0.0.0.0:9862'", "'[::]:9862'", "'10.0.0.1:9862', '10.0.1.1:9862'",
                             "'10.0.0.1:9862', '0.0.0.0:9863'"}) {
    EXPECT_EQ(interface(listen), "") << listen;
    const ConfigReading reading = read(kMulticast, listen);
    EXPECT_FALSE(reading.config) << listen;
    EXPECT_THAT(problems(reading),
                ElementsAre(HasSubstr("replication.interface: missing: [cluster] listen is not one "
                                      "IPv4 address of this node")));
    EXPECT_TRUE(read(kMulticast + std::string("interface = '10.0.0.1'\n"), listen).config);
  }
}

TEST(ConfigReplication, WhatIsWrongIsNamed) {
  struct Case {
    const char* text;
    const char* problem;
  };
  const Case kCases[] = {
      {"mode = 'broadcast'",
       "m:7: replication.mode: expected \"multicast\" or \"unicast\", found \"broadcast\""},
      {"mode = true", "m:7: replication.mode: expected a string in quotes, found "},
      {"mode = 'multicast'", "m:6: replication.group: missing: multicast needs"},
      {"mode = 'unicast'\ngroup = '239.192.7.1'",
       "m:8: replication.group: \"239.192.7.1\" is no multicast group with a port: it is no IPv4 "
       "address with a port; expected one as in group = \"239.192.7.1:6003\""},
      {"mode = 'unicast'\ngroup = '10.0.0.1:6003'", "\"10.0.0.1\" is no IPv4 multicast address"},
      {"mode = 'unicast'\ngroup = '224.0.0.5:6003'", "which switches send to everybody"},
      {"mode = 'unicast'\ngroup = '239.192.7.1:0'", "port 0"},
      {"mode = 'unicast'\ngroup = '[ff02::1]:6003'", "\"ff02::1\" is no IPv4 multicast address"},
      {"rate_limit = '800M'", "m:7: replication.rate_limit: expected 1mbit to 100gbit"},
      {"interface = 'eth0'", "m:7: replication.interface: \"eth0\" is no IPv4 address"},
      {"encrypt = 'no'", "m:7: replication.encrypt: expected true or false"},
      {"modus = 'multicast'", "unknown key; the nearest that exists is \"replication.mode\""},
  };
  for (const Case& c : kCases) {
    const ConfigReading reading = read("[replication]\n" + std::string(c.text) + "\n");
    EXPECT_FALSE(reading.config) << c.text;
    EXPECT_THAT(problems(reading), ElementsAre(HasSubstr(c.problem))) << c.text;
  }
}

TEST(ConfigReplication, AGroupWithoutAModeIsNotUsedWhichIsSaid) {
  const ConfigReading reading = read("[replication]\ngroup = '239.192.7.1:6003'\n");
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(problems(reading),
              ElementsAre("m:7: warning: replication.group: not used: without mode = \"multicast\" "
                          "writes go by unicast"));
}

TEST(ConfigReplication, AStandaloneNodeDoesNotUseIt) {
  const ConfigReading reading =
      parse_config("version = 1\n[replication]\nmode = 'multicast'\n", "m");
  EXPECT_TRUE(reading.config);
  EXPECT_THAT(problems(reading),
              ElementsAre("m:2: warning: replication: only in a cluster: not used, because this "
                          "node is standalone"));
}

}  // namespace
}  // namespace mariner
