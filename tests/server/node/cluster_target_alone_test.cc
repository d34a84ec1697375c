// A node of a cluster that serves a volume and stores nothing of it.
#include <gmock/gmock.h>

#include "tests/server/node/cluster_node_fixture.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

class ClusterTargetAlone : public testing::ClusterNodeFixture {
 protected:
  static constexpr std::size_t kAlone = 0;
  static constexpr std::size_t kStores = 1;
  ClusterTargetAlone()
      : ClusterNodeFixture({{"a", {Role::kTarget}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {}
  void begin(std::vector<std::string> targets) {
    configure_volume(kAlone, "c", {"b"});
    config(kAlone).volumes.front().targets = std::move(targets);
    for (const std::size_t member : {2, 0}) start(member);
    ASSERT_TRUE(eventually([this] { return node().replicas(kVolume).coordinator() == "a"; }));
    start(kStores);
    ASSERT_TRUE(comes_to_serve(kAlone));
  }
  Result<api::View> expose() {
    api::ExposeRequest request;
    request.set_volume(kVolume);
    request.set_name("v");
    return node(kAlone).ask(&ClusterControl::view_expose, request);
  }
  Result<api::Promotion> promote(const std::string& name) {
    api::PromoteRequest request;
    request.set_volume(kVolume);
    request.set_node(name);
    return node(kAlone).ask(&ClusterControl::node_promote, request);
  }
};

TEST_F(ClusterTargetAlone, ServesWhatOthersStore) {
  begin({"a", "b"});
  write(1, 'x', kAlone);
  EXPECT_EQ(read(1, kAlone), 'x');
  EXPECT_EQ(node(kAlone).state_of(kVolume), "serving");
  EXPECT_EQ(node(kAlone).show(kVolume)->image_path(), "");
  EXPECT_EQ(node(kStores).state_of(kVolume), "standby");
  EXPECT_EQ(node(kAlone).on_loop([](ClusterNode& node) {
    const web::NodeMetrics metrics = node.metrics();
    return metrics.volumes.at(0).replicas.at(0).replica + " " +
           metrics.volumes.at(0).replicas.at(0).role;
  }),
            "b master");
  EXPECT_TRUE(node(kAlone).ask(&ClusterControl::doctor));
  stop(kAlone);
  ASSERT_TRUE(comes_to_serve(kStores));
  EXPECT_EQ(read(1, kStores), 'x');
  start(kAlone);
  ASSERT_TRUE(eventually([this] { return node(kAlone).state_of(kVolume) == "standby"; }));
  ASSERT_TRUE(eventually([this] { return promote("a").has_value(); }));
  EXPECT_EQ(read(1, kAlone), 'x');
}

TEST_F(ClusterTargetAlone, ViewsAreSeenWhereTheImageIs) {
  begin({"a", "b"});
  write(0, 'x', kAlone);
  const Result<api::View> view = expose();
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_NE(view->iqn(), "");
  write(0, 'y', kAlone);
  EXPECT_FALSE(node(kAlone).on_loop([&](ClusterNode& node) {
    return node.open(view->iqn(), "iqn.2026-11.org.example:host").has_value();
  }));
  ASSERT_TRUE(eventually([&] {
    return node(kStores).on_loop([&](ClusterNode& node) {
      return node.open(view->iqn(), "iqn.2026-11.org.example:host").has_value();
    });
  }));
  EXPECT_EQ(testing::BlockClient::byte_of(node(kStores).client(kStores).read(view->iqn(), 0)), 'x');
}

TEST_F(ClusterTargetAlone, WhereOnlyOthersServeItNobodyElseDoes) {
  begin({"a"});
  write(0, 'x', kAlone);
  EXPECT_EQ(read(0, kAlone), 'x');
  EXPECT_THAT(to_string(promote("b").error()), HasSubstr("node b may not serve db1: expected a"));
  EXPECT_THAT(to_string(expose().error()), HasSubstr("no node that may serve db1 stores it"));
  EXPECT_FALSE(node(kStores).on_loop([](ClusterNode& node) {
    return node.open(kIqn, "iqn.2026-11.org.example:host").has_value();
  }));
}

}  // namespace
}  // namespace mariner::node
