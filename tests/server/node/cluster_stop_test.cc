#include <gmock/gmock.h>

#include "server/node/cluster_control.h"
#include "tests/server/node/cluster_node_fixture.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node {
namespace {

class ClusterStopTest : public testing::ClusterNodeFixture {
 protected:
  ClusterStopTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {
    for (const std::size_t member : {0, 1}) configure_volume(member, "c", {"a", "b"});
  }
  void start_all() {
    for (const std::size_t member : {2, 0, 1}) start(member);
    ASSERT_TRUE(eventually([&] { return node(0).serves(kVolume) || node(1).serves(kVolume); }));
    first_ = node(0).serves(kVolume) ? 0 : 1;
    second_ = 1 - first_;
    ASSERT_TRUE(eventually([&] { return node(second_).show(kVolume)->state() == "standby"; }));
  }

  std::size_t first_ = 0;
  std::size_t second_ = 1;
};

TEST_F(ClusterStopTest, HandsOverWhileHostsAreLoggedIn) {
  start_all();
  write(3, 'x', first_);
  testing::InitiatorSession host(node(first_).ask(&ClusterControl::status)->portals(0), kIqn);
  host.use();
  const std::uint64_t epoch = node(second_).replicas(kVolume).epoch();
  stop(first_);
  EXPECT_TRUE(node(second_).serves(kVolume)) << "before the stop has ended";
  EXPECT_GT(node(second_).replicas(kVolume).epoch(), epoch);
  EXPECT_EQ(read(3, second_), 'x');
  EXPECT_GT(told("state=standby", first_), 0u) << "hosts were told where to go";
}

TEST_F(ClusterStopTest, OfAVolumeThatNobodyTakesByHimselfHandsOverToNobody) {
  for (const std::size_t member : {0, 1}) config(member).volumes.front().promote = false;
  start_all();
  testing::InitiatorSession host(node(first_).ask(&ClusterControl::status)->portals(0), kIqn);
  host.use();
  stop(first_);
  EXPECT_EQ(node(second_).show(kVolume)->state(), "transitioning");
  EXPECT_EQ(told("state=standby", first_), 0u);
}

}  // namespace
}  // namespace mariner::node
