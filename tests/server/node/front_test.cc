#include "server/node/front.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

TEST(PortalGroupTag, AStandaloneServerKeepsWhatIsConfigured) {
  EXPECT_EQ(portal_group_tag(1, 0), 1);
  EXPECT_EQ(portal_group_tag(65535, 0), 65535);
}

TEST(PortalGroupTag, TheFirstGroupOfANodeHasItsNumber) {
  EXPECT_EQ(portal_group_tag(1, 1), 1);
  EXPECT_EQ(portal_group_tag(1, kClusterNodeIdMax), kClusterNodeIdMax);
}

TEST(PortalGroupTag, EachGroupOfEachNodeOfAClusterHasItsOwn) {
  std::set<std::uint16_t> tags;
  for (std::uint16_t tag = 1; tag <= kClusterPortalGroupTagMax; ++tag) {
    for (std::uint32_t node = 1; node <= kClusterNodeIdMax; ++node) {
      tags.insert(portal_group_tag(tag, node));
    }
  }
  EXPECT_EQ(tags.size(), std::size_t{kClusterPortalGroupTagMax} * kClusterNodeIdMax);
  EXPECT_FALSE(tags.contains(0));
}

// Beside the front of a node that runs, with its targets and its control.
class FrontTest : public testing::NodeFixture {
 protected:
  FrontTest() : null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)) {
    server_ = config().server;
    server_.admin_socket = path("run/other.sock");
    server_.portals = {{.address = "127.0.0.1"}};
  }
  ~FrontTest() override { ::close(null_); }
  Result<std::unique_ptr<Front>> open(std::uint32_t node, bool portals) {
    return Front::open(server_, node, portals, {loop_, log_, this->node(), control_, this->node()});
  }

  const int null_;
  Log log_{{.fd = null_}};
  EventLoop loop_;
  NodeControl control_{node()};
  ServerConfig server_;
};

TEST_F(FrontTest, ListensWhereItIsToldTo) {
  server_.portal_groups = {{.tag = 2, .portals = {{.address = "127.0.0.1"}}}};
  const auto front = open(3, true);
  ASSERT_TRUE(front);
  EXPECT_TRUE((*front)->has_portal());
  EXPECT_EQ((*front)->portal().addresses().size(), 2u);
  EXPECT_TRUE(std::filesystem::is_socket(server_.admin_socket)) << "in a folder that it made";
  (*front)->start();
  bool stopped = false;
  (*front)->stop([&] { stopped = true; });
  loop_.run_until([&] { return stopped; });
}

TEST_F(FrontTest, HasNoPortalsWhereNoInitiatorIsServed) {
  const auto front = open(3, false);
  ASSERT_TRUE(front);
  EXPECT_FALSE((*front)->has_portal());
  EXPECT_TRUE(std::filesystem::is_socket(server_.admin_socket));
  (*front)->start();
  bool stopped = false;
  (*front)->stop([&] { stopped = true; });
  EXPECT_TRUE(stopped);
}

TEST_F(FrontTest, ListensEverywhereOrFails) {
  const Result<api::StatusAnswer> status = ask(&NodeControl::status);
  ASSERT_TRUE(status);
  const Result<Endpoint> taken = parse_endpoint(status->portals(0));
  ASSERT_TRUE(taken);
  server_.portals = {*taken};
  const auto portal = open(0, true);
  ASSERT_FALSE(portal);
  EXPECT_NE(portal.error().message.find(to_string(*taken)), std::string::npos);
  EXPECT_TRUE(open(0, false)) << "the portal is not asked for";

  server_.portals = {{.address = "127.0.0.1"}};
  server_.http = *taken;
  EXPECT_FALSE(open(0, true));
  server_.http.reset();
  server_.admin_socket = config().server.admin_socket;
  EXPECT_FALSE(open(0, true)) << "another daemon's admin socket";
}

}  // namespace
}  // namespace mariner::node
