#include "server/node/cluster_port_groups.h"

#include <gtest/gtest.h>

#include "server/scsi/unit_access.h"
#include "tests/server/cluster/target_rig.h"

namespace mariner::node {
namespace {

using cluster::TargetRig;
using replication::NodeId;
using scsi::AccessState;
using States = std::vector<AccessState>;

class ClusterPortGroupsTest : public ::testing::Test {
 protected:
  States states() const {
    States states;
    for (const scsi::PortGroup& group : groups_.groups()) states.push_back(group.state);
    return states;
  }
  std::vector<bool> preferred() const {
    std::vector<bool> preferred;
    for (const scsi::PortGroup& group : groups_.groups()) preferred.push_back(group.preferred);
    return preferred;
  }
  void coordinated_by_two() {
    rig_.put({TargetRig::kVolume, Epoch{9}, NodeId{2}, NodeId{1}, {NodeId{1}, NodeId{2}}});
    ASSERT_TRUE(
        rig_.cluster.commit({.puts = {{manager::alive_key(NodeId{2}), "two"}}}).has_value());
    rig_.executor.advance(std::chrono::seconds(1));
  }

  TargetRig rig_;
  manager::VolumeDirectory directory_{rig_.member.store, rig_.member.view};
  ClusterPortGroups groups_{{TargetRig::kVolume, NodeId{1}, {1, 2}, std::chrono::seconds(3)},
                            directory_};
};

TEST_F(ClusterPortGroupsTest, EachNodeIsAGroupOfItsNumber) {
  const std::vector<scsi::PortGroup> groups = groups_.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].id, 1u);
  EXPECT_EQ(groups[1].id, 2u);
  EXPECT_EQ(groups_.ports(), (std::vector<std::uint16_t>{1, 2}));
  EXPECT_EQ(groups[1].ports, std::vector<std::uint16_t>{2});
  EXPECT_GE(groups_.transition_s(), 9u);
}

// The first is preferred, whatever its number.
TEST_F(ClusterPortGroupsTest, PortsAscendAlsoWhereNodesDoNot) {
  const ClusterPortGroups groups{
      {TargetRig::kVolume, NodeId{1}, {4, 1, 2}, std::chrono::seconds(3)}, directory_};
  EXPECT_EQ(groups.ports(), (std::vector<std::uint16_t>{1, 2, 4}));
  EXPECT_EQ(groups.groups().front().id, 4u);
  const scsi::UnitAccess access(std::make_shared<ClusterPortGroups>(groups), groups.ports());
  EXPECT_EQ(access.group_of(4), 4u) << "(it checks what it is given)";
}

TEST_F(ClusterPortGroupsTest, OneIsActiveOrAllAreInTransition) {
  EXPECT_EQ(states(), States(2, AccessState::kTransitioning)) << "there is no target yet";
  rig_.serve();
  groups_.attach(*rig_.member.target);
  EXPECT_EQ(states(), (States{AccessState::kActiveOptimized, AccessState::kStandby}));
  EXPECT_EQ(groups_.state_of(1), AccessState::kActiveOptimized);
  EXPECT_EQ(groups_.state_of(2), AccessState::kStandby);
  rig_.member.cut(true);
  rig_.executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(states(), States(2, AccessState::kTransitioning)) << "nobody knows who serves";
  groups_.detach();
}

TEST_F(ClusterPortGroupsTest, TheFirstIsPreferredWhileItIsActive) {
  EXPECT_EQ(preferred(), (std::vector<bool>{false, false}));
  rig_.serve();
  groups_.attach(*rig_.member.target);
  EXPECT_EQ(preferred(), (std::vector<bool>{true, false}));
  groups_.detach();
}

// A host without multipath fails what is in standby, and asks again what is in transition.
TEST_F(ClusterPortGroupsTest, WhereHostsAreSentElsewhereStandbyIsATransition) {
  coordinated_by_two();
  rig_.begin();
  rig_.executor.advance(std::chrono::seconds(1));
  ClusterPortGroups sends({TargetRig::kVolume, NodeId{1}, {1, 2}, std::chrono::seconds(3), true},
                          directory_);
  sends.attach(*rig_.member.target);
  EXPECT_EQ(sends.state_of(1), AccessState::kTransitioning);
  for (const scsi::PortGroup& group : sends.groups()) {
    EXPECT_EQ(group.state, AccessState::kTransitioning);
  }
}

TEST_F(ClusterPortGroupsTest, WhereHostsAreSentElsewhereWhoServesIsActive) {
  rig_.serve();
  ClusterPortGroups sends({TargetRig::kVolume, NodeId{1}, {1, 2}, std::chrono::seconds(3), true},
                          directory_);
  sends.attach(*rig_.member.target);
  EXPECT_EQ(sends.state_of(1), AccessState::kActiveOptimized);
  EXPECT_EQ(sends.groups()[1].state, AccessState::kStandby);
}

TEST_F(ClusterPortGroupsTest, WhoeverCoordinatesIsActive) {
  coordinated_by_two();
  rig_.begin();
  rig_.executor.advance(std::chrono::seconds(1));
  groups_.attach(*rig_.member.target);
  EXPECT_EQ(states(), (States{AccessState::kStandby, AccessState::kActiveOptimized}));
  EXPECT_EQ(groups_.state_of(1), AccessState::kStandby);
  EXPECT_EQ(preferred(), (std::vector<bool>{false, false})) << "hosts would go to the standby";
  groups_.detach();
  EXPECT_EQ(groups_.state_of(1), AccessState::kTransitioning);
}

}  // namespace
}  // namespace mariner::node
