#include "server/node/cluster_views.h"

#include <gmock/gmock.h>

#include "server/node/identity.h"
#include "tests/server/node/cluster_node_fixture.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node {
namespace {

using testing::BlockClient;

class ClusterViewsTest : public testing::ClusterNodeFixture {
 protected:
  ClusterViewsTest()
      : ClusterNodeFixture({{"a", {Role::kTarget, Role::kStorage}},
                            {"b", {Role::kTarget, Role::kStorage}},
                            {"c", {Role::kLogger}}}) {}
  void SetUp() override {
    ClusterNodeFixture::SetUp();
    if (IsSkipped()) return;
    configure_volume(0, "c", {"a", "b"});
    for (const std::size_t member : {2, 0}) start(member);
    ASSERT_TRUE(comes_to_serve());
    start(1);
    for (const char byte : {'1', '2', '3'}) write(0, byte);
  }
  Result<api::View> expose(const std::string& name, std::uint64_t back) {
    api::HistoryRequest all;
    all.set_name(kVolume);
    api::ExposeRequest request;
    request.set_volume(kVolume);
    request.set_name(name);
    request.mutable_at()->set_sequence(node().ask(&ClusterControl::history, all)->to().sequence() -
                                       back);
    return node().ask(&ClusterControl::view_expose, request);
  }
  std::optional<char> seen(const std::string& iqn, std::size_t member) {
    const bool served = node(member).on_loop([&](ClusterNode& node) {
      return node.open(iqn, "iqn.2026-11.org.example:host").has_value();
    });
    if (!served) return std::nullopt;
    return BlockClient::byte_of(node(member).client(member).read(iqn, 0));
  }
  std::optional<api::View> listed(const std::string& name, std::size_t member) {
    const api::ViewList views = *node(member).ask(&ClusterControl::view_list);
    for (const api::View& view : views.views()) {
      if (view.name() == name && !view.iqn().empty()) return view;
    }
    return std::nullopt;
  }
};

TEST_F(ClusterViewsTest, EveryNodeWithAnImageServesThemWhoeverCoordinates) {
  const Result<api::View> view = expose("v", 1);
  ASSERT_TRUE(view) << to_string(view.error());
  ASSERT_TRUE(eventually([&] { return listed("v", 1).has_value(); }));
  EXPECT_EQ(listed("v", 1)->serial(), view->serial()) << "one identity";
  EXPECT_EQ(seen(view->iqn(), 0), '2');
  ASSERT_TRUE(eventually([&] { return seen(view->iqn(), 1) == '2'; }));
  EXPECT_NE(node().client(0).write(view->iqn(), 0, 'x').status, scsi::Status::kGood);
  stop(0);
  EXPECT_EQ(seen(view->iqn(), 1), '2') << "without the coordinator";
  ASSERT_TRUE(comes_to_serve(1));
  write(0, '4', 1);
  EXPECT_EQ(seen(view->iqn(), 1), '2');
  start(0);
  ASSERT_TRUE(eventually([&] { return seen(view->iqn(), 0) == '2'; })) << "also behind a restart";
}

TEST_F(ClusterViewsTest, AreTakenAwayAtEveryNode) {
  ASSERT_TRUE(expose("v", 0));
  EXPECT_EQ(expose("v", 1).error().code, ErrorCode::kAlreadyExists);
  ASSERT_TRUE(eventually([&] { return listed("v", 1).has_value(); }));
  testing::InitiatorSession session(node(0).ask(&ClusterControl::status)->portals(0),
                                    listed("v", 0)->iqn());
  api::UnexposeRequest request;
  request.set_name("v");
  EXPECT_EQ(node().ask(&ClusterControl::view_unexpose, request).error().code, ErrorCode::kBusy);
  request.set_force(true);
  request.set_dry_run(true);
  EXPECT_TRUE(node().ask(&ClusterControl::view_unexpose, request));
  request.set_dry_run(false);
  EXPECT_EQ(node().ask(&ClusterControl::session_list)->sessions(0).view(), "v");
  EXPECT_TRUE(node().ask(&ClusterControl::view_unexpose, request));
  for (const std::size_t member : {0, 1}) {
    EXPECT_TRUE(eventually(
        [&] { return node(member).ask(&ClusterControl::view_list)->views_size() == 0; }));
  }
  EXPECT_TRUE(
      eventually([&] { return node().ask(&ClusterControl::session_list)->sessions_size() == 0; }));
  EXPECT_EQ(node().ask(&ClusterControl::view_unexpose, request).error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterViewsTest, WhatMakesNoSenseIsLeftAlone) {
  meta::View view;
  view.set_name("v");
  view.set_volume_id(1);
  view.set_size_bytes(kVolumeBytes);
  view.set_uuid("short");
  put(manager::view_key("v"), view.SerializeAsString());
  view.set_name("w");
  view.set_volume_id(99);
  view.set_uuid(std::string(kUuidBytes, 'u'));
  put(manager::view_key("w"), view.SerializeAsString());
  put(manager::view_key("x"), "\xff\xff");
  const Result<api::View> good = expose("y", 1);
  ASSERT_TRUE(good);
  EXPECT_EQ(seen(good->iqn(), 0), '2');
  for (const char* name : {"v", "w", "x"}) EXPECT_FALSE(listed(name, 0)) << name;
}

}  // namespace
}  // namespace mariner::node
