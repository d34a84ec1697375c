#include "server/node/config_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/source_folder.h"

namespace mariner {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigReading read(const std::string& text) {
  return parse_config("version = 1\nroles = ['standalone']\n" + text, "m.toml");
}

// The first problem, or "".
std::string problem(const std::string& text) {
  const ConfigReading reading = read(text);
  return reading.problems.empty() ? "" : to_string(reading.problems.front());
}

TEST(ConfigCluster, WhatIsWritten) {
  const ConfigReading reading = read("[cluster]\npki = '/x/pki'\nenrol = '192.0.2.1:9861'\n");
  ASSERT_TRUE(reading.config) << to_string(reading.problems.front());
  EXPECT_EQ(reading.config->cluster.pki, "/x/pki");
  ASSERT_TRUE(reading.config->cluster.enrol);
  EXPECT_EQ(to_string(*reading.config->cluster.enrol), "192.0.2.1:9861");
}

TEST(ConfigCluster, WithoutItThereIsAFolderAndNoEnrolment) {
  const ConfigReading reading = read("[server]\nstate_dir = '/var/x'\n");
  ASSERT_TRUE(reading.config);
  EXPECT_EQ(reading.config->cluster.pki, "/var/x/pki");
  EXPECT_FALSE(reading.config->cluster.enrol);
}

TEST(ConfigCluster, WhereNobodyCanConnectTo) {
  for (const auto* address : {"0.0.0.0:9861", "[::]:9861", "192.0.2.1:0"}) {
    const std::string found = problem(std::string("[cluster]\nenrol = '") + address + "'\n");
    EXPECT_NE(found.find("m.toml:4: cluster.enrol: "), std::string::npos) << found;
    EXPECT_NE(found.find("not where other nodes can connect to"), std::string::npos) << found;
  }
  EXPECT_NE(problem("[cluster]\nenrol = 'host'\n").find("there is no port"), std::string::npos);
}

TEST(ConfigCluster, WrongPathsAndUnknownKeys) {
  EXPECT_NE(problem("[cluster]\npki = 'pki'\n").find("not an absolute path"), std::string::npos);
  EXPECT_NE(problem("[cluster]\nenroll = '192.0.2.1:9861'\n").find("enrol"), std::string::npos);
}

// A node of a cluster, whose [cluster] stands on line 3; its keys from line 4 on.
ConfigReading read_node(const std::string& keys) {
  return parse_config("version = 1\nroles = ['logger']\n[cluster]\n" + keys, "m.toml");
}

constexpr const char* kListen = "listen = ['10.0.0.1:9862']\n";
constexpr const char* kEtcd = "etcd = ['10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.3:2379']\n";

std::string node(const std::string& id, const std::string& name, const std::string& addresses) {
  return fmt::format("[[cluster.node]]\nid = {}\nname = '{}'\naddresses = [{}]\n", id, name,
                     addresses);
}

const std::string kNode = node("1", "a", "'10.0.0.1:9862'");

std::vector<std::string> problems(const ConfigReading& reading) {
  std::vector<std::string> all;
  for (const auto& problem : reading.problems) all.push_back(to_string(problem));
  return all;
}

TEST(ConfigCluster, WhatANodeOfAClusterSays) {
  const ConfigReading reading = read_node(
      "listen = ['0.0.0.0:9862', '[::]:9862']\nlease = '10s'\nabsent_max = '2d'\n"
      "catch_up_max = '100M'\n" +
      std::string(kEtcd) + kNode + node("4095", "n-2.east", "'10.0.0.2:9862', '[fd00::2]:9862'"));
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(problems(reading), IsEmpty());
  const ClusterConfig& cluster = reading.config->cluster;
  EXPECT_THAT(cluster.listen,
              ElementsAre(Endpoint{"0.0.0.0", 9862, false}, Endpoint{"::", 9862, true}));
  EXPECT_THAT(cluster.etcd,
              ElementsAre(Endpoint{"10.0.0.1", 2379, false}, Endpoint{"10.0.0.2", 2379, false},
                          Endpoint{"10.0.0.3", 2379, false}));
  EXPECT_EQ(cluster.lease, seconds(10));
  EXPECT_EQ(cluster.absent_max, std::chrono::hours(48));
  EXPECT_EQ(cluster.catch_up_max, ByteSize{100u << 20});
  EXPECT_THAT(
      cluster.nodes,
      ElementsAre(ClusterNodeConfig{1, "a", {{"10.0.0.1", 9862, false}}},
                  ClusterNodeConfig{
                      4095, "n-2.east", {{"10.0.0.2", 9862, false}, {"fd00::2", 9862, true}}}));
}

TEST(ConfigCluster, TheLeaseIsThreeSecondsIfNothingIsSaid) {
  EXPECT_EQ(read_node(kListen + std::string(kEtcd) + kNode).config->cluster.lease, seconds(3));
  EXPECT_EQ(read_node(kListen + std::string(kEtcd) + kNode).config->cluster.absent_max,
            std::chrono::hours(1));
}

TEST(ConfigCluster, CatchingUpHasNoLimitOrOneThatCanBeKept) {
  const auto with = [](const std::string& value) {
    return read_node(kListen + std::string(kEtcd) + "catch_up_max = '" + value + "'\n" + kNode);
  };
  EXPECT_EQ(with("0").config->cluster.catch_up_max, ByteSize{0});
  EXPECT_THAT(problems(with("1M")), ElementsAre(HasSubstr("8 MiB")));
  EXPECT_THAT(problems(with("fast")), ElementsAre(HasSubstr("fast")));
}

TEST(ConfigCluster, WhatANodeOfAClusterNeeds) {
  EXPECT_THAT(problems(read_node(kEtcd + kNode)),
              ElementsAre("m.toml:3: cluster.listen: missing: where do other nodes reach this one? "
                          "As in listen = [\"192.0.2.1:9862\"]"));
  EXPECT_THAT(
      problems(read_node(kListen + kNode)),
      ElementsAre("m.toml:3: cluster.etcd: missing: a node that is not standalone needs the "
                  "addresses of etcd's members, as in etcd = [\"192.0.2.1:2379\", "
                  "\"192.0.2.2:2379\", \"192.0.2.3:2379\"]"));
  EXPECT_THAT(problems(read_node(kListen + std::string(kEtcd))),
              ElementsAre("m.toml:3: cluster.node: missing: a node that is not standalone needs a "
                          "[[cluster.node]] for each node of the cluster, this one included"));
  const ConfigReading nothing = parse_config("version = 1\nroles = ['logger']\n", "m.toml");
  EXPECT_FALSE(nothing.config);
  EXPECT_THAT(problems(nothing), ElementsAre(HasSubstr("m.toml: cluster.listen: missing"),
                                             HasSubstr("m.toml: cluster.etcd: missing"),
                                             HasSubstr("m.toml: cluster.node: missing")));
}

TEST(ConfigCluster, AStandaloneNodeIsToldWhatItDoesNotUse) {
  const ConfigReading reading = parse_config(
      "version = 1\n[cluster]\nlease = '3s'\n" + std::string(kListen) + kEtcd + kNode, "m.toml");
  ASSERT_TRUE(reading.config);
  const std::string words = "only in a cluster: not used, because this node is standalone";
  EXPECT_THAT(problems(reading), ElementsAre("m.toml:3: warning: cluster.lease: " + words,
                                             "m.toml:4: warning: cluster.listen: " + words,
                                             "m.toml:5: warning: cluster.etcd: " + words,
                                             "m.toml:6: warning: cluster.node: " + words));
}

TEST(ConfigCluster, EachRuleHasItsMessage) {
  struct Case {
    std::string keys;  // instead of what is right
    std::string problem;
  };
  const std::string etcd = kEtcd;
  const std::string listen = kListen;
  const Case cases[] = {
      {"listen = ['10.0.0.1']\n" + etcd + kNode,
       "m.toml:4: cluster.listen: \"10.0.0.1\" is not an address with a port: there is no port"},
      {"listen = ['10.0.0.1:0']\n" + etcd + kNode,
       "m.toml:4: cluster.listen: \"10.0.0.1:0\" has no port that others could know"},
      {"listen = []\n" + etcd + kNode, "m.toml:4: cluster.listen: empty; expected at least one"},
      {"listen = '10.0.0.1:9862'\n" + etcd + kNode,
       "m.toml:4: cluster.listen: expected a list of strings, found a string"},
      {"listen = ['10.0.0.1:1', '10.0.0.1:1']\n" + etcd + kNode,
       "m.toml:4: cluster.listen: \"10.0.0.1:1\" stands there twice"},
      {"listen = ['', '', '', '', '', '', '', '', '']\n" + etcd + kNode,
       "m.toml:4: cluster.listen: expected at most 8, found 9"},
      {listen + "etcd = ['http://10.0.0.1:2379']\n" + kNode,
       "m.toml:5: cluster.etcd: \"http://10.0.0.1:2379\" is not an address with a port"},
      {listen + "etcd = ['0.0.0.0:2379']\n" + kNode,
       "m.toml:5: cluster.etcd: \"0.0.0.0:2379\" is not where other nodes can connect to: expected "
       "one address and a port, as in \"192.0.2.1:2379\""},
      {listen + "etcd = []\n" + kNode, "m.toml:5: cluster.etcd: empty; expected at least one"},
      {listen + "etcd = ['', '', '', '', '', '', '', '', '', '']\n" + kNode,
       "m.toml:5: cluster.etcd: expected at most 9, found 10"},
      {listen + "lease = '1s'\n" + etcd + kNode,
       "m.toml:5: cluster.lease: expected whole seconds, from 2s to 1m, found 1s"},
      {listen + "lease = '61s'\n" + etcd + kNode,
       "m.toml:5: cluster.lease: expected whole seconds, from 2s to 1m, found 1m1s"},
      {listen + "lease = '2500ms'\n" + etcd + kNode,
       "m.toml:5: cluster.lease: expected whole seconds, from 2s to 1m, found 2s500ms"},
      {listen + "lease = 3\n" + etcd + kNode,
       "m.toml:5: cluster.lease: expected a string in quotes, found a whole number"},
      {listen + etcd + "[cluster.node]\nid = 1\n",
       "m.toml:6: cluster.node: expected tables with double brackets: [[cluster.node]], found a "
       "table"},
      {listen + etcd + node("0", "a", "'10.0.0.1:9862'"),
       "m.toml:7: cluster.node.id: expected 1 to 4095, found 0"},
      {listen + etcd + node("4096", "a", "'10.0.0.1:9862'"),
       "m.toml:7: cluster.node.id: expected 1 to 4095, found 4096"},
      {listen + etcd + "[[cluster.node]]\nname = 'a'\naddresses = ['10.0.0.1:9862']\n",
       "m.toml:6: cluster.node.id: missing: a node needs a number, 1 to 4095, that no other has or "
       "ever had"},
      {listen + etcd + node("1", "A", "'10.0.0.1:9862'"),
       "m.toml:8: cluster.node.name: \"A\" is not a node's name: expected 1 to 63 characters"},
      {listen + etcd + "[[cluster.node]]\nid = 1\naddresses = ['10.0.0.1:9862']\n",
       "m.toml:6: cluster.node.name: missing: a node needs the name that stands in its "
       "certificate"},
      {listen + etcd + node("1", "a", "'[::]:9862'"),
       "m.toml:9: cluster.node.addresses: \"[::]:9862\" is not where other nodes can connect to"},
      {listen + etcd + node("1", "a", "'ADDRESS:9862'"),
       "m.toml:9: cluster.node.addresses: \"ADDRESS:9862\" is not an address with a port: the host "
       "is not an IP address"},
      {listen + etcd + node("1", "a", ""), "m.toml:9: cluster.node.addresses: empty"},
      {listen + etcd + "[[cluster.node]]\nid = 1\nname = 'a'\n",
       "m.toml:6: cluster.node.addresses: missing: where do others reach it?"},
      {listen + etcd + kNode + "port = 1\n", "m.toml:10: cluster.node.port: unknown key"},
      {listen + etcd + kNode + node("1", "b", "'10.0.0.2:9862'"),
       "m.toml:10: cluster.node.id: 1 is the number of node \"a\": expected another one, that no "
       "node has or ever had"},
      {listen + etcd + kNode + node("2", "a", "'10.0.0.2:9862'"),
       "m.toml:10: cluster.node.name: there are two nodes \"a\": expected each once"},
      {listen + etcd + kNode + node("2", "b", "'10.0.0.2:9862', '10.0.0.1:9862'"),
       "m.toml:10: cluster.node.addresses: 10.0.0.1:9862 is where node \"a\" is: expected another "
       "one"},
      {"nodes = 1\n" + listen + etcd + kNode,
       "m.toml:4: cluster.nodes: unknown key; the nearest that exists is \"cluster.node\""},
  };
  for (const Case& c : cases) {
    const ConfigReading reading = read_node(c.keys);
    EXPECT_FALSE(reading.config) << c.keys;
    EXPECT_THAT(problems(reading), ElementsAre(HasSubstr(c.problem))) << c.keys;
  }
}

TEST(ConfigCluster, AsManyNodesAsThereMayBe) {
  std::string nodes;
  for (std::size_t i = 1; i <= kClusterNodesMax; ++i) {
    nodes += node(std::to_string(i), fmt::format("n{}", i), fmt::format("'10.0.1.{}:9862'", i));
  }
  const ConfigReading most = read_node(kListen + std::string(kEtcd) + nodes);
  ASSERT_TRUE(most.config);
  EXPECT_EQ(most.config->cluster.nodes.size(), kClusterNodesMax);
  EXPECT_THAT(problems(read_node(kListen + std::string(kEtcd) + nodes +
                                 node("65", "n65", "'10.0.1.65:9862'"))),
              ElementsAre("m.toml:6: cluster.node: expected at most 64 nodes, found 65"));
}

// The warnings about these members of etcd.
std::vector<std::string> warnings(const std::string& members) {
  const ConfigReading reading =
      read_node(fmt::format("{}etcd = [{}]\n{}", kListen, members, kNode));
  EXPECT_TRUE(reading.config) << members;
  return problems(reading);
}

TEST(ConfigCluster, EtcdHasToBearTheLossOfOneMachine) {
  EXPECT_THAT(
      warnings("'10.0.0.1:2379'"),
      ElementsAre("m.toml:5: warning: cluster.etcd: the loss of 10.0.0.1 alone stops the "
                  "cluster: 0 of the members of etcd would be left, and 1 are needed; three "
                  "on three machines bear the loss of any one"));
  EXPECT_THAT(warnings("'10.0.0.1:2379', '10.0.0.2:2379'"),
              ElementsAre(HasSubstr("1 of the members of etcd would be left, and 2 are needed")));
  EXPECT_THAT(warnings("'10.0.0.1:2379', '10.0.0.2:2379', '10.0.0.2:2479'"),
              ElementsAre(HasSubstr("the loss of 10.0.0.2 alone stops the cluster")));
  EXPECT_THAT(warnings("'10.0.0.1:1', '10.0.0.1:2', '10.0.0.2:1', '10.0.0.3:1', '10.0.0.4:1'"),
              IsEmpty());
}

TEST(ConfigCluster, EtcdBelongsOnATrustedNetwork) {
  EXPECT_THAT(warnings("'127.0.0.1:2379', '[fd00::2]:2379', '192.168.0.3:2379'"), IsEmpty());
  EXPECT_THAT(
      warnings("'10.0.0.1:2379', '198.51.100.2:2379', '10.0.0.3:2379'"),
      ElementsAre("m.toml:5: warning: cluster.etcd: 198.51.100.2:2379 is no address of a "
                  "private network: nodes speak with etcd by plain HTTP, without passwords, "
                  "and who gets between them decides who coordinates; use a network that you "
                  "trust"));
}

TEST(ConfigCluster, TheExampleIsValid) {
  const ConfigReading reading = load_config(test::source_path("deploy/marinerd-cluster.toml"));
  ASSERT_TRUE(reading.config) << testing::PrintToString(problems(reading));
  EXPECT_THAT(problems(reading), IsEmpty());
  EXPECT_EQ(reading.config->cluster.nodes.size(), 3u);
  EXPECT_EQ(reading.config->volumes.size(), 1u);
}

}  // namespace
}  // namespace mariner
