#include "server/manager/alive_node.h"

#include <gtest/gtest.h>

#include "proto/cluster.pb.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using replication::NodeId;

std::vector<Endpoint> endpoints(std::initializer_list<const char*> texts) {
  std::vector<Endpoint> all;
  for (const char* text : texts) all.push_back(*parse_endpoint(text));
  return all;
}

const AliveNode kNode{"a", true, endpoints({"192.0.2.1:3260", "[2001:db8::1]:3260"})};

TEST(AliveNode, ComesBackAsItWas) {
  const auto decoded = decode_alive_node(encode(kNode));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, kNode);
  EXPECT_EQ(*decode_alive_node(encode(AliveNode{"b", false, {}})), (AliveNode{"b", false, {}}));
}

TEST(AliveNode, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const cluster::AliveNode& message) {
    return !decode_alive_node(message.SerializeAsString()).has_value();
  };
  cluster::AliveNode good;
  ASSERT_TRUE(good.ParseFromString(encode(kNode)));
  ASSERT_FALSE(refused(good));
  cluster::AliveNode bad = good;
  bad.set_version(2);
  EXPECT_TRUE(refused(bad));
  for (const char* portal : {"", "192.0.2.1", "192.0.2.1:0", "0.0.0.0:3260", "[::]:3260",
                             "example.org:3260", "192.0.2.1:3260\nTargetName=x"}) {
    bad = good;
    bad.add_portals(portal);
    EXPECT_TRUE(refused(bad)) << portal;
  }
  bad = good;
  while (bad.portals_size() < static_cast<int>(kAlivePortalsMax)) bad.add_portals("192.0.2.1:1");
  EXPECT_FALSE(refused(bad));
  bad.add_portals("192.0.2.1:1");
  EXPECT_TRUE(refused(bad));
  EXPECT_FALSE(decode_alive_node("").has_value());
  EXPECT_FALSE(decode_alive_node("a").has_value()) << "a name, as it was once";
  EXPECT_FALSE(decode_alive_node("\xff\xff\xff").has_value());
}

TEST(AliveNode, IsKnownWhileItsKeyIsThere) {
  test::ManualExecutor executor;
  MemoryCluster cluster(executor);
  MemoryStore store(executor, cluster, {});
  ClusterView view(store, executor, std::string(kClusterPrefix), {}, [] {});
  executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(alive_node(view, NodeId{1}), std::nullopt);
  ASSERT_TRUE(cluster.commit(
      {.puts = {{alive_key(NodeId{1}), encode(kNode)}, {alive_key(NodeId{2}), "what is this"}}}));
  executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(alive_node(view, NodeId{1}), kNode);
  EXPECT_EQ(alive_node(view, NodeId{2}), std::nullopt);
}

TEST(NearestPortal, IsOfTheNetworkThatTheHostCameBy) {
  const auto portals =
      endpoints({"192.0.2.7:3260", "198.51.100.7:3261", "[2001:db8::7]:3262", "192.0.2.8:3263"});
  const auto near = [&](std::string_view came) { return nearest_portal(portals, came)->port; };
  EXPECT_EQ(near("192.0.2.1:3260"), 3260);
  EXPECT_EQ(near("198.51.100.1:3260"), 3261);
  EXPECT_EQ(near("[2001:db8::1]:3260"), 3262);
  EXPECT_EQ(near("192.0.2.9:3260"), 3263) << "192.0.2.8 shares a bit more";
  EXPECT_EQ(near("192.0.2.7:3260"), 3260);
  EXPECT_EQ(near("what is this"), 3260);
  EXPECT_EQ(nearest_portal(endpoints({"[2001:db8::7]:1"}), "192.0.2.1:3260")->port, 1)
      << "rather than nowhere";
  EXPECT_EQ(nearest_portal({}, "192.0.2.1:3260"), std::nullopt);
}

}  // namespace
}  // namespace mariner::manager
