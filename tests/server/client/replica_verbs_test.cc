#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::HasSubstr;

class ReplicaVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    control.cluster.set_cluster("north");
    auto& node = *control.cluster.add_nodes();
    node.set_name("a");
    node.set_number(1);
    node.set_self(true);
    node.set_alive(true);
    node.add_addresses("192.0.2.1:9862");
    auto& other = *control.cluster.add_nodes();
    other.set_name("b");
    other.set_number(2);
    auto& volume = *control.cluster.add_volumes();
    volume.set_name("db1");
    volume.set_epoch(3);
    volume.set_coordinator("a");
    volume.set_state("serving");
    auto& logger = *volume.add_replicas();
    logger.set_role("logger");
    logger.set_node("c");
    logger.set_known(true);
    logger.set_settled(500);
    auto& image = *volume.add_replicas();
    image.set_role("storage");
    image.set_node("a");
    image.set_known(true);
    image.set_caught_up(true);
    image.set_durable(420);
    image.set_lag_bytes(8u << 20);
    auto& mirror = *volume.add_replicas();
    mirror.set_role("storage");
    mirror.set_node("b");
  }
};

TEST_F(ReplicaVerbs, StatusShowsWhoCoordinatesAndHowFarEachIs) {
  run({"replica", "status"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr("db1         3  a            serving  logger   c     everything up to "
                             "#500 is settled\n"));
  EXPECT_THAT(out, HasSubstr("has all; #420 in the image, 8 MiB waiting for it"));
  EXPECT_THAT(out, HasSubstr("b     this node does not know"));
  EXPECT_EQ(control.asked.back(), "cluster_status");
}

TEST_F(ReplicaVerbs, StatusShowsHowFarANodeIsWithWhatItMissed) {
  api::Replica& mirror = *control.cluster.mutable_volumes(0)->mutable_replicas(2);
  mirror.set_known(true);
  mirror.set_durable(310);
  mirror.set_missed_total_bytes(10ull << 30);
  mirror.set_missed_left_bytes(6ull << 30);
  run({"replica", "status"});
  EXPECT_THAT(out, HasSubstr("fetching what it missed: 4 GiB of 10 GiB (40 %); #310 in the image"));
  mirror.set_missed_bytes_per_second(100u << 20);
  run({"replica", "status"});
  EXPECT_THAT(out, HasSubstr("4 GiB of 10 GiB (40 %), 100 MiB/s, about 1m2s left; #310"));
}

TEST_F(ReplicaVerbs, StatusShowsAnImageThatHasFailed) {
  control.cluster.mutable_volumes(0)->set_degraded("the image of node b has failed: broken");
  api::Replica& mirror = *control.cluster.mutable_volumes(0)->mutable_replicas(2);
  mirror.set_known(true);
  mirror.set_durable(310);
  mirror.set_failure("broken");
  run({"replica", "status"});
  EXPECT_THAT(out, HasSubstr("serving, degraded"));
  EXPECT_THAT(out, HasSubstr("image failed: broken; #310 in the image"));
}

TEST_F(ReplicaVerbs, StatusShowsWhichWayWritesGo) {
  control.cluster.mutable_volumes(0)->mutable_replicas(0)->set_payloads("multicast");
  control.cluster.mutable_volumes(0)->mutable_replicas(2)->set_payloads("connection");
  run({"replica", "status"});
  EXPECT_THAT(out, HasSubstr("#500 is settled; writes come by multicast\n"));
  EXPECT_THAT(out, HasSubstr("; writes come over its connection, not by multicast\n"));
  run({"--json", "replica", "status"});
  EXPECT_THAT(out, HasSubstr("\"payloads\":\"multicast\""));
}

TEST_F(ReplicaVerbs, WithoutVolumes) {
  control.cluster.clear_volumes();
  run({"replica", "status"});
  EXPECT_THAT(out, HasSubstr("The cluster has no volumes."));
}

TEST_F(ReplicaVerbs, NodesAreListed) {
  run({"node", "list"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, HasSubstr(" 1  a (this one)  alive      192.0.2.1:9862"));
  EXPECT_THAT(out, HasSubstr(" 2  b             not there"));
}

}  // namespace
}  // namespace mariner::client
