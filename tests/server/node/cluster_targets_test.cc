#include <gmock/gmock.h>

#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using ClusterTargets = testing::ClusterNodeFixture;

TEST_F(ClusterTargets, KnowsWhichTargetsItHas) {
  configure_volume(0, "a", {"a"});
  start();
  ASSERT_TRUE(comes_to_serve());
  node().on_loop([](ClusterNode& node) {
    EXPECT_TRUE(node.open(kIqn, "iqn.2026-11.org.example:host"));
    EXPECT_EQ(node.open("iqn.2026-11.org.example:other", "").error().code, ErrorCode::kNotFound);
    EXPECT_THAT(node.discoverable("", ""), ::testing::ElementsAre(kIqn));
  });
}

TEST_F(ClusterTargets, TheAccessListAndTheMetricsOfAVolume) {
  configure_volume(0, "a", {"a"});
  config().volumes.front().acl = {"iqn.2026-11.org.example:initiator"};
  start();
  ASSERT_TRUE(comes_to_serve());
  write(0, 'a');
  node().on_loop([](ClusterNode& node) {
    EXPECT_EQ(node.open(kIqn, "iqn.2026-11.org.example:stranger").error().code,
              ErrorCode::kInvalidArgument);
    EXPECT_THAT(node.discoverable("iqn.2026-11.org.example:stranger", ""), ::testing::IsEmpty());
    EXPECT_TRUE(node.accounts(kIqn, "")->empty());
    const web::NodeMetrics metrics = node.metrics();
    ASSERT_EQ(metrics.volumes.size(), 1u);
    EXPECT_EQ(metrics.volumes[0].volume, kVolume);
    EXPECT_GT(metrics.log_used_bytes, 0u);
    ASSERT_EQ(metrics.volumes[0].replicas.size(), 1u);
    EXPECT_EQ(metrics.volumes[0].replicas[0].replica, "a");
    EXPECT_EQ(metrics.volumes[0].replicas[0].role, "master");
  });
}

}  // namespace
}  // namespace mariner::node
