// Nodes of the cluster: server/node/control_nodes.cc.
#include <gtest/gtest.h>

#include "server/peer/pki_folder.h"
#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlNodes : public testing::NodeFixture {
 protected:
  Result<api::Invitation> invite(const std::string& node, bool dry_run = false) {
    api::InviteRequest request;
    request.set_node(node);
    request.set_dry_run(dry_run);
    return ask(&NodeControl::node_invite, request);
  }
};

TEST_F(ControlNodes, WithoutAClusterNobodyIsInvited) {
  const auto refused = invite("n2");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("[cluster] enrol"), std::string::npos);
}

TEST_F(ControlNodes, WithoutAClusterNobodyIsPromoted) {
  const auto refused = ask(&NodeControl::node_promote, api::PromoteRequest{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("standalone server"), std::string::npos);
}

TEST_F(ControlNodes, TheNodeOfTheAuthorityInvites) {
  stop();
  config().cluster.pki = path("pki");
  config().cluster.enrol = Endpoint{.address = "127.0.0.1", .port = 0};
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSERT_TRUE(peer::PkiFolder(path("pki")).create_cluster({"north", "n1"}, now));
  start();
  const auto planned = invite("n2", true);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->token(), "");
  const auto invited = invite("n2");
  ASSERT_TRUE(invited) << invited.error().message;
  EXPECT_TRUE(invited->token().starts_with("mariner-join/1/"));
  EXPECT_EQ(invited->fingerprint(), planned->fingerprint());
}

}  // namespace
}  // namespace mariner::node
