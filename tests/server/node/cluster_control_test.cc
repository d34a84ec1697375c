#include "server/node/cluster_control.h"

#include <gmock/gmock.h>

#include "tests/server/node/cluster_node_fixture.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

class ClusterControlTest : public testing::ClusterNodeFixture {
 protected:
  void serve() {
    configure_volume(0, "a", {"a"});
    start();
    ASSERT_TRUE(comes_to_serve());
  }
  std::unique_ptr<testing::InitiatorSession> log_in() {
    return std::make_unique<testing::InitiatorSession>(
        node().ask(&ClusterControl::status)->portals(0), kIqn);
  }
  Result<api::Session> kick(std::uint64_t id, bool dry_run) {
    api::SessionRequest request;
    request.set_id(id);
    request.set_dry_run(dry_run);
    request.set_force(true);
    return node().ask(&ClusterControl::session_kick, request);
  }
  // How what is not done in a cluster is refused.
  template <typename T, typename Request>
  void expect_refused(void (ClusterControl::*call)(const Request&, admin::Answer<T>),
                      const std::string& what) {
    const Result<T> answer = node().ask(call, Request{});
    ASSERT_FALSE(answer) << what;
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(answer.error().message, HasSubstr(what));
  }
};

TEST_F(ClusterControlTest, TheNodeTheVolumeAndTheCluster) {
  serve();
  const Result<api::StatusAnswer> status = node().ask(&ClusterControl::status);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->ready());
  EXPECT_EQ(status->portals_size(), 1);
  EXPECT_EQ(status->iqn_base(), "iqn.2026-11.org.example");
  EXPECT_GT(status->log_limit_bytes(), 0u);
  EXPECT_LE(status->started_ns(), status->now_ns());
  EXPECT_THAT(status->config_path(), ::testing::EndsWith("/marinerd.toml"));

  const Result<api::Volume> volume = node().show(kVolume);
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->name(), kVolume);
  EXPECT_EQ(volume->id(), 1u);
  EXPECT_EQ(volume->size_bytes(), kVolumeBytes);
  EXPECT_EQ(volume->block_size(), 512u);
  EXPECT_EQ(volume->iqn(), kIqn);
  EXPECT_EQ(volume->state(), "serving");
  EXPECT_EQ(volume->image_path(), path("state/images/1.raw"));
  EXPECT_EQ(volume->serial().size(), 32u);
  EXPECT_EQ(volume->naa().size(), 16u);
  const Result<api::VolumeList> list = node().ask(&ClusterControl::volume_list);
  ASSERT_EQ(list->volumes_size(), 1);
  EXPECT_EQ(list->volumes(0).serial(), volume->serial());
  const Result<api::Volume> none = node().show("db2");
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("db2"));

  write(0, 'a');
  const Result<api::ClusterStatus> cluster = node().ask(&ClusterControl::cluster_status);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->cluster(), "north");
  EXPECT_TRUE(cluster->store_answers());
  ASSERT_EQ(cluster->nodes_size(), 1);
  EXPECT_EQ(cluster->nodes(0).name(), "a");
  EXPECT_EQ(cluster->nodes(0).number(), 1u);
  EXPECT_TRUE(cluster->nodes(0).alive());
  EXPECT_TRUE(cluster->nodes(0).self());
  EXPECT_EQ(cluster->nodes(0).addresses(0), to_string(config().cluster.listen.front()));
  ASSERT_EQ(cluster->volumes_size(), 1);
  const api::ReplicatedVolume& replicas = cluster->volumes(0);
  EXPECT_EQ(replicas.name(), kVolume);
  EXPECT_EQ(replicas.coordinator(), "a");
  EXPECT_EQ(replicas.state(), "serving");
  EXPECT_FALSE(replicas.promote_by_hand());
  ASSERT_EQ(replicas.replicas_size(), 2);
  EXPECT_EQ(replicas.replicas(0).role(), "logger");
  EXPECT_TRUE(replicas.replicas(0).known());
  EXPECT_GT(replicas.replicas(0).settled(), 0u);
  EXPECT_EQ(replicas.replicas(1).role(), "storage");
  EXPECT_TRUE(replicas.replicas(1).caught_up());
  EXPECT_GT(replicas.replicas(1).committed(), 0u);
}

TEST_F(ClusterControlTest, SessionsAreListedAndEnded) {
  serve();
  EXPECT_EQ(node().ask(&ClusterControl::session_list)->sessions_size(), 0);
  EXPECT_EQ(kick(1, true).error().code, ErrorCode::kNotFound);
  const auto session = log_in();
  session->use();
  const Result<api::SessionList> sessions = node().ask(&ClusterControl::session_list);
  ASSERT_EQ(sessions->sessions_size(), 1);
  const api::Session& only = sessions->sessions(0);
  EXPECT_EQ(only.initiator(), testing::InitiatorSession::kName);
  EXPECT_EQ(only.target(), kIqn);
  EXPECT_EQ(only.volume(), kVolume);
  EXPECT_EQ(node().show(kVolume)->sessions(), 1u);
  EXPECT_EQ(kick(only.id(), true)->id(), only.id());
  EXPECT_EQ(kick(only.id(), false)->id(), only.id());
  EXPECT_EQ(node().ask(&ClusterControl::session_list)->sessions_size(), 0);
  EXPECT_EQ(kick(only.id(), false).error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterControlTest, ANodeWithoutATargetHasNoSessionsAndNoPortals) {
  config().roles = {Role::kStorage, Role::kLogger};
  start();
  EXPECT_EQ(node().ask(&ClusterControl::status)->portals_size(), 0);
  EXPECT_EQ(node().ask(&ClusterControl::session_list)->sessions_size(), 0);
  EXPECT_EQ(kick(1, false).error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterControlTest, WhatAClusterCannotDoYetIsRefusedByName) {
  start();
  expect_refused(&ClusterControl::volume_create, "[[volume]] section");
  expect_refused(&ClusterControl::volume_create, "marinerd.toml");
  expect_refused(&ClusterControl::volume_resize, "resizing a volume");
  expect_refused(&ClusterControl::volume_delete, "deleting a volume");
  expect_refused(&ClusterControl::access_show, "showing access");
  expect_refused(&ClusterControl::acl_add, "changing access");
  expect_refused(&ClusterControl::acl_remove, "changing access");
  expect_refused(&ClusterControl::auth_set, "changing access");
  expect_refused(&ClusterControl::redirect_set, "redirecting a volume");
  const auto imported = node().on_loop([](ClusterNode& node) {
    std::optional<Result<api::Volume>> answer;
    ClusterControl(node).volume_import(
        {}, [](std::uint64_t, std::uint64_t) {},
        [&answer](Result<api::Volume> r) { answer = std::move(r); });
    return answer;
  });
  ASSERT_TRUE(imported);
  EXPECT_THAT(imported->error().message, HasSubstr("importing a volume"));
  const auto cloned = node().on_loop([](ClusterNode& node) {
    std::optional<Result<api::Clone>> answer;
    ClusterControl(node).volume_clone(
        {}, [](std::uint64_t, std::uint64_t) {},
        [&answer](Result<api::Clone> r) { answer = std::move(r); });
    return answer;
  });
  ASSERT_TRUE(cloned);
  EXPECT_THAT(cloned->error().message, HasSubstr("cloning a volume"));
}

TEST_F(ClusterControlTest, ThereAreNoViews) {
  start();
  EXPECT_EQ(node().ask(&ClusterControl::view_list)->views_size(), 0);
  api::UnexposeRequest request;
  request.set_name("then");
  const Result<api::View> answer = node().ask(&ClusterControl::view_unexpose, request);
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(answer.error().message, HasSubstr("then"));
}

TEST_F(ClusterControlTest, ANodeThatCannotInviteSaysWhy) {
  start();
  api::InviteRequest request;
  request.set_node("d");
  const Result<api::Invitation> answer = node().ask(&ClusterControl::node_invite, request);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().message.empty());
}

TEST_F(ClusterControlTest, TheDoctorLooksAtTheStoreTheNodesAndTheLog) {
  config().cluster.nodes.push_back({.id = 2, .name = "b", .addresses = {{"127.0.0.1", 1}}});
  start();
  ASSERT_TRUE(
      eventually([&] { return node().ask(&ClusterControl::cluster_status)->nodes(0).alive(); }));
  const Result<api::DoctorAnswer> answer = node().ask(&ClusterControl::doctor);
  ASSERT_EQ(answer->findings_size(), 4);
  EXPECT_EQ(answer->findings(0).check(), "cluster's store");
  EXPECT_EQ(answer->findings(0).level(), "ok");
  EXPECT_EQ(answer->findings(1).found(), "a is alive");
  EXPECT_EQ(answer->findings(1).level(), "ok");
  EXPECT_EQ(answer->findings(2).found(), "b is not there");
  EXPECT_EQ(answer->findings(2).level(), "error");
  EXPECT_FALSE(answer->findings(2).advice().empty());
  EXPECT_EQ(answer->findings(3).check(), "log space");
  EXPECT_EQ(answer->findings(3).level(), "ok");
}

}  // namespace
}  // namespace mariner::node
