#include <gmock/gmock.h>

#include <filesystem>

#include "server/peer/pki_folder.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kToken =
    "mariner-join/1/127.0.0.1:1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa00000000000000000000000000000000/"
    "00112233445566778899aabbccddeeff";

class NodeVerbs : public DaemonTest {
 protected:
  logging::test::TemporaryDirectory directory_;
  const std::string pki_ = directory_.file("deeper/pki");
};

TEST_F(NodeVerbs, InitMakesACluster) {
  run({"node", "init", "--cluster", "north", "--node", "n1", "--pki", pki_});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(out, StartsWith("Cluster north has its first node, n1."));
  EXPECT_THAT(out, HasSubstr("\n[[cluster.node]]\nid = 1\nname = \"n1\"\naddresses = ["));
  const peer::WallTime now{std::chrono::seconds(kNow.ns / 1'000'000'000)};
  EXPECT_EQ(peer::PkiFolder(pki_).load(now).value().name.node, "n1");
  EXPECT_TRUE(control.asked.empty());  // no daemon is needed
  run({"node", "init", "--cluster", "south", "--node", "n1", "--pki", pki_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("never replaced"));
}

TEST_F(NodeVerbs, InitAsJsonAndAsADryRun) {
  run({"node", "init", "--cluster", "north", "--node", "n1", "--pki", pki_, "--dry-run"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("Dry run"));
  EXPECT_FALSE(std::filesystem::exists(pki_));
  run({"node", "init", "--cluster", "north", "--node", "n1", "--pki", pki_, "--json"});
  EXPECT_THAT(out, StartsWith("{\"schema\":1,\"cluster\":\"north\",\"node\":\"n1\""));
}

TEST_F(NodeVerbs, WrongNames) {
  run({"node", "init", "--cluster", "North", "--node", "n1", "--pki", pki_});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(err, HasSubstr("is not a cluster's name"));
  run({"node", "init", "--cluster", "north", "--pki", pki_});
  EXPECT_EQ(code, 2);
}

TEST_F(NodeVerbs, InvitePrintsTheTokenAlone) {
  control.invitation.set_node("n2");
  control.invitation.set_token(kToken);
  control.invitation.set_ends_ns(kNow.ns);
  run({"node", "invite", "n2", "--quiet"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_EQ(out, std::string(kToken) + "\n");
  EXPECT_THAT(control.asked, ElementsAre("node_invite node: \"n2\""));
  run({"node", "invite", "n2"});
  EXPECT_THAT(out, HasSubstr("until 2026-11-20"));
  run({"node", "invite", "n2", "--dry-run"});
  EXPECT_THAT(control.asked, ElementsAre("node_invite node: \"n2\" dry_run: true"));
  EXPECT_THAT(out, testing::Not(HasSubstr("mariner-join")));
  control.error = Error{ErrorCode::kNotFound, "no authority here"};
  run({"node", "invite", "n2"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("no authority here"));
}

TEST_F(NodeVerbs, PromoteSaysWhoServesNow) {
  control.promotion.set_schema(1);
  control.promotion.set_volume("db1");
  control.promotion.set_node("n2");
  control.promotion.set_from("n1");
  control.promotion.set_epoch(7);
  run({"node", "promote", "db1", "--node", "n2"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("node_promote volume: \"db1\" node: \"n2\""));
  EXPECT_EQ(out, "Node n2 serves db1 now, in epoch 7; before, node n1 did.\n");
  run({"node", "promote", "db1", "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked, ElementsAre("node_promote volume: \"db1\" dry_run: true"));
  EXPECT_THAT(out, StartsWith("Node n2 would coordinate db1, which node n1 coordinates now.\n"));
  EXPECT_THAT(out, HasSubstr("Dry run"));
  run({"node", "promote", "db1", "--json"});
  EXPECT_THAT(out, StartsWith("{\"schema\":1,\"volume\":\"db1\",\"node\":\"n2\",\"from\":\"n1\""));
  control.promotion.clear_from();
  run({"node", "promote", "db1"});
  EXPECT_THAT(out, HasSubstr("before, nobody did"));
  control.promotion.set_already(true);
  run({"node", "promote", "db1"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, "Node n2 coordinates db1 already.\n");
}

TEST_F(NodeVerbs, PromoteFailsAsItIsTold) {
  control.error = Error{ErrorCode::kUnavailable, "node n2 is not alive"};
  run({"node", "promote", "db1", "--node", "n2"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("node n2 is not alive"));
  control.error = Error{ErrorCode::kBusy, "node n1 is being promoted"};
  run({"node", "promote", "db1"});
  EXPECT_EQ(code, 4);
  run({"node", "promote"});
  EXPECT_EQ(code, 2);
}

TEST_F(NodeVerbs, EnrolChecksBeforeItConnects) {
  run({"node", "enrol", "nonsense", "--pki", pki_});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(err, HasSubstr("this is no invitation"));
  run({"node", "enrol", kToken, "--pki", pki_, "--dry-run"});
  EXPECT_EQ(code, 0) << err;
  std::filesystem::create_directories(pki_ + "/something");
  run({"node", "enrol", kToken, "--pki", pki_});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("never replaced"));
}

TEST_F(NodeVerbs, EnrolReadsTheTokenFromStandardInput) {
  typed = std::string(kToken) + "\n";
  run({"node", "enrol", "-", "--pki", pki_});  // nobody listens on port 1
  EXPECT_EQ(code, 1);
  EXPECT_THAT(err, HasSubstr("cannot connect to 127.0.0.1:1"));
  EXPECT_FALSE(std::filesystem::exists(pki_));
}

}  // namespace
}  // namespace mariner::client
