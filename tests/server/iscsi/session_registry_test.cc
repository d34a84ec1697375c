#include "server/iscsi/session_registry.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

TEST(SessionRegistryTest, ListsCountsAndForgets) {
  TestServer server;
  {
    TestClient first(server);
    TestClient second(server);
    first.login({}, 1);
    second.login({}, 2);
    EXPECT_EQ(server.registry->size(), 2u);
    EXPECT_EQ(server.registry->count_of(TestDirectory::kName), 2u);
    EXPECT_EQ(server.registry->count_of("iqn.other"), 0u);
    const auto list = server.registry->list();
    EXPECT_NE(list[0].id, list[1].id);
    EXPECT_NE(list[0].tsih, list[1].tsih);
    EXPECT_TRUE(server.registry->exists(list[0].tsih));
  }
  EXPECT_EQ(server.registry->size(), 0u);
  EXPECT_EQ(server.registry->counters().sessions, 2u);
  EXPECT_EQ(server.registry->counters().connections, 2u);
}

TEST(SessionRegistryTest, KickEndsOneSession) {
  TestServer server;
  TestClient first(server);
  TestClient second(server);
  first.login({}, 1);
  second.login({}, 2);
  const auto id = server.registry->list()[0].id;
  const auto kicked = server.registry->kick(id);
  ASSERT_TRUE(kicked);
  EXPECT_EQ(kicked->id, id);
  EXPECT_TRUE(first.connection.closing());
  EXPECT_FALSE(second.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kKicked);
  EXPECT_EQ(server.registry->kick(id).error().code, ErrorCode::kNotFound);
}

TEST(SessionRegistryTest, ATargetThatGoesAwayTakesItsSessionsWithIt) {
  TestServer server;
  TestClient normal(server);
  TestClient discovery(server);
  normal.login();
  discovery.login_discovery();
  server.registry->close_target(TestDirectory::kName);
  EXPECT_TRUE(normal.connection.closing());
  EXPECT_FALSE(discovery.connection.closing());
}

TEST(SessionRegistryTest, SessionsAreBoundedButMayBeReinstated) {
  Options options;
  options.sessions_max = 1;
  TestServer server(options);
  TestClient first(server);
  first.login({}, 1);
  TestClient second(server);
  InitiatorPdu login = login_pdu(
      keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"}),
      kOperationalToFull);
  login.bhs[13] = std::byte{2};
  EXPECT_EQ(second.send(login).at(0).u16(36), 0x0302);
  TestClient third(server);
  third.login({}, 1);
  EXPECT_TRUE(first.connection.closing());
}

TEST(SessionRegistryTest, ADrainingServerRefusesLogins) {
  TestServer server;
  TestClient client(server);
  server.registry->drain(1);
  const auto replies = client.send(login_pdu(
      keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"}),
      kOperationalToFull));
  EXPECT_EQ(replies.at(0).u16(36), 0x0301);
  EXPECT_EQ(server.registry->counters().login_failures, 1u);
}

}  // namespace
}  // namespace mariner::iscsi
