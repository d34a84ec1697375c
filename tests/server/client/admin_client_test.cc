#include "server/client/admin_client.h"

#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;

class AdminClientTest : public DaemonTest {};

TEST_F(AdminClientTest, EveryFunctionReachesTheDaemon) {
  AdminClient client(socket);
  control.volumes.add_volumes()->set_name("a b/c");
  EXPECT_TRUE(client.status());
  EXPECT_TRUE(client.doctor());
  EXPECT_TRUE(client.session_list());
  EXPECT_TRUE(client.view_list());
  api::VolumeRequest volume;
  volume.set_name("a b/c");
  EXPECT_EQ(client.volume_show(volume)->name(), "a b/c");
  api::InviteRequest invite;
  invite.set_node("n2");
  EXPECT_TRUE(client.node_invite(invite));
  api::MarkRequest mark;
  mark.set_volume("a b/c");
  mark.set_name("m/ä");
  EXPECT_TRUE(client.mark_remove(mark));
  EXPECT_THAT(control.asked, ElementsAre("status", "doctor", "session_list", "view_list",
                                         "volume_show name: \"a b/c\"", "node_invite node: \"n2\"",
                                         "mark_remove volume: \"a b/c\" name: \"m/\\303\\244\""));
}

TEST_F(AdminClientTest, ImportReportsProgress) {
  control.import_progress = {{5, 10}};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  api::ImportRequest request;
  request.set_name("a");
  EXPECT_TRUE(AdminClient(socket).volume_import(
      request, [&seen](auto done, auto all) { seen.emplace_back(done, all); }));
  EXPECT_THAT(seen, ElementsAre(std::pair{5, 10}));
}

TEST_F(AdminClientTest, CloningReportsProgress) {
  control.import_progress = {{5, 10}};
  control.clone_answer.set_source("a");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  api::CloneRequest request;
  request.set_volume("a");
  request.set_name("b");
  const auto clone = AdminClient(socket).volume_clone(
      request, [&seen](auto done, auto all) { seen.emplace_back(done, all); });
  ASSERT_TRUE(clone);
  EXPECT_EQ(clone->source(), "a");
  EXPECT_THAT(seen, ElementsAre(std::pair{5, 10}));
}

TEST_F(AdminClientTest, TheDaemonsErrorsArriveAsTheyAre) {
  control.error = Error{ErrorCode::kOutsideWindow, "too old"};
  const auto status = AdminClient(socket).status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOutsideWindow);
  EXPECT_EQ(status.error().message, "too old");
}

TEST_F(AdminClientTest, NobodyThere) {
  for (const auto& path :
       {std::string("/nonexistent/s"), std::string("/"), std::string(200, 'x')}) {
    const auto status = AdminClient(path).status();
    ASSERT_FALSE(status) << path;
  }
  EXPECT_EQ(AdminClient("/nonexistent/s").status().error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace mariner::client
