#include "server/node/cluster_redirection.h"

#include <gtest/gtest.h>

#include "proto/cluster.pb.h"
#include "server/manager/alive_node.h"
#include "server/manager/serving_sign.h"
#include "tests/server/cluster/target_rig.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;
using cluster::TargetRig;
using replication::NodeId;

std::vector<Endpoint> endpoints(std::initializer_list<const char*> texts) {
  std::vector<Endpoint> all;
  for (const char* text : texts) all.push_back(*parse_endpoint(text));
  return all;
}

TEST(ReachablePortals, ArePortalsOfEveryAddressAtTheNodesOwn) {
  const auto own = endpoints({"192.0.2.1:9862", "198.51.100.1:9862", "[2001:db8::1]:9862"});
  EXPECT_EQ(
      reachable_portals({"203.0.113.1:3260", "0.0.0.0:3261", "[::]:3262"}, own),
      endpoints({"203.0.113.1:3260", "192.0.2.1:3261", "198.51.100.1:3261", "[2001:db8::1]:3262"}));
  EXPECT_EQ(reachable_portals({"0.0.0.0:3260", "192.0.2.1:3260", "nonsense"}, own),
            endpoints({"192.0.2.1:3260", "198.51.100.1:3260"}));
  EXPECT_TRUE(reachable_portals({}, own).empty());
  EXPECT_EQ(reachable_portals(std::vector<std::string>(100, "0.0.0.0:3260"), own).size(), 2u);
}

class ClusterRedirectionTest : public ::testing::Test {
 protected:
  ClusterRedirectionTest() {
    volume_.meta.set_id(TargetRig::kVolume.value);
    volume_.meta.mutable_cluster()->set_redirect(true);
  }
  ~ClusterRedirectionTest() override { rig_.member.target = std::move(volume_.target); }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(rig_.cluster.commit({.puts = {{key, value}}}));
    rig_.executor.advance(100ms);
  }
  // Two coordinates, and serves or not; where it says that it is reached, at `portals`.
  void coordinated_by_two(bool serves, std::initializer_list<const char*> portals) {
    put(manager::alive_key(NodeId{2}),
        manager::encode(manager::AliveNode{"b", true, endpoints(portals)}));
    rig_.put({TargetRig::kVolume, Epoch{9}, NodeId{2}, NodeId{1}, {NodeId{1}, NodeId{2}}});
    cluster::Serving sign;
    sign.set_node(2);
    sign.set_epoch(9);
    if (serves) put(manager::serving_key(TargetRig::kVolume), sign.SerializeAsString());
    begin();
  }
  void begin() {
    rig_.begin();
    volume_.target = std::move(rig_.member.target);
    rig_.executor.advance(1s);
  }
  std::string elsewhere(std::string_view came = "192.0.2.1:3260") {
    const auto to = redirection_of(volume_, rig_.member.view, came);
    return to ? to->address + (to->permanent ? "!" : "") : "here";
  }

  TargetRig rig_;
  ClusterVolume volume_;
};

TEST_F(ClusterRedirectionTest, WhoStandsBySendsToWhoServes) {
  coordinated_by_two(true, {"198.51.100.2:3260", "192.0.2.2:3260"});
  EXPECT_EQ(elsewhere(), "192.0.2.2:3260");
  EXPECT_EQ(elsewhere("198.51.100.1:3260"), "198.51.100.2:3260");
  EXPECT_FALSE(served_nowhere(volume_));
  volume_.meta.mutable_cluster()->set_redirect(false);
  EXPECT_EQ(elsewhere(), "here");
}

TEST_F(ClusterRedirectionTest, WhoCoordinatesAndDoesNotServeYetIsSentNobody) {
  coordinated_by_two(false, {"192.0.2.2:3260"});
  EXPECT_EQ(elsewhere(), "here");
}

TEST_F(ClusterRedirectionTest, WhoIsReachedNowhereIsSentNobody) {
  coordinated_by_two(true, {});
  EXPECT_EQ(elsewhere(), "here");
  put(manager::alive_key(NodeId{2}), "what is this");
  EXPECT_EQ(elsewhere(), "here");
}

TEST_F(ClusterRedirectionTest, WhoServesKeepsItsHosts) {
  begin();
  rig_.member.target = std::move(volume_.target);  // so that it hears of its lease
  rig_.executor.advance(1s);
  volume_.target = std::move(rig_.member.target);
  EXPECT_EQ(volume_.target->state(), cluster::TargetPart::State::kServing);
  EXPECT_EQ(elsewhere(), "here");
  EXPECT_FALSE(served_nowhere(volume_));
}

TEST_F(ClusterRedirectionTest, WithoutACoordinatorAHostIsToComeAgain) {
  coordinated_by_two(true, {"192.0.2.2:3260"});
  ASSERT_TRUE(rig_.cluster.commit({.deletes = {manager::alive_key(NodeId{2})}}));
  rig_.executor.advance(100ms);
  EXPECT_EQ(elsewhere(), "here");
  EXPECT_TRUE(served_nowhere(volume_));
  volume_.meta.mutable_cluster()->set_redirect(false);
  EXPECT_FALSE(served_nowhere(volume_)) << "it finds the unit in transition, as multipath does";
}

TEST_F(ClusterRedirectionTest, ANodeThatIsAboutToServeKeepsItsHosts) {
  rig_.promises.hold();
  rig_.begin();
  rig_.executor.advance(1s);
  volume_.target = std::move(rig_.member.target);
  ASSERT_NE(volume_.target->coordinator(), nullptr);
  EXPECT_EQ(volume_.target->state(), cluster::TargetPart::State::kTransitioning);
  EXPECT_FALSE(served_nowhere(volume_));
}

TEST_F(ClusterRedirectionTest, AVolumeThatIsNoTargetHere) {
  EXPECT_EQ(elsewhere(), "here");
  EXPECT_FALSE(served_nowhere(volume_));
}

}  // namespace
}  // namespace mariner::node
