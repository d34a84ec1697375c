#include "server/iscsi/session_registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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
  const auto kicked = server.registry->kick(id, true);
  ASSERT_TRUE(kicked);
  EXPECT_EQ(kicked->id, id);
  EXPECT_TRUE(first.connection.closing());
  EXPECT_FALSE(second.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kKicked);
  EXPECT_EQ(server.registry->kick(id, true).error().code, ErrorCode::kNotFound);
}

std::vector<int> async_events(const std::vector<TargetPdu>& pdus) {
  std::vector<int> events;
  for (const TargetPdu& pdu : pdus) {
    if (pdu.opcode() == Opcode::kAsyncMessage) events.push_back(pdu.u8(36));
  }
  return events;
}

// RFC 7143 11.9.1: first it is asked (event 1), then it is told that it is dropped (event 3).
TEST(SessionRegistryTest, WhoIsAskedToLeaveHasTimeForIt) {
  TestServer server;
  TestClient client(server);
  client.login();
  ASSERT_TRUE(server.registry->kick(server.registry->list()[0].id, false));
  auto pdus = client.take();
  EXPECT_EQ(async_events(pdus), std::vector{1});
  EXPECT_EQ(pdus[0].u16(42), 5) << "seconds to leave";
  server.executor.now += std::chrono::seconds(4);
  client.connection.tick();
  EXPECT_EQ(server.registry->size(), 1u);
  EXPECT_EQ(
      server.registry->ask_to_leave([](const Session&) { return true; }, EndReason::kForbidden), 1u)
      << "once is enough: the time is not longer";
  EXPECT_TRUE(client.take().empty());
  server.executor.now += std::chrono::seconds(1);
  client.connection.tick();
  EXPECT_TRUE(client.connection.closing());
  pdus = client.take();
  EXPECT_EQ(async_events(pdus), std::vector{3});
  EXPECT_EQ(pdus[0].u16(40), 2) << "Time2Wait";
  EXPECT_EQ(pdus[0].u16(42), 0) << "Time2Retain";
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kKicked);
}

TEST(SessionRegistryTest, WhoLeavesWhenAskedIsNotDropped) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_EQ(server.registry->ask_to_leave(
                [](const Session& session) { return !session.identity().discovery; },
                EndReason::kRedirected),
            1u);
  client.take();
  EXPECT_EQ(client.send(logout_pdu(LogoutReason::kCloseSession)).at(0).opcode(),
            Opcode::kLogoutResponse);
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kLogout);
}

TEST(SessionRegistryTest, AnInitiatorIsBoundedBesideOthers) {
  Options options;
  options.initiator_sessions_max = 2;
  TestServer server(options);
  TestClient first(server);
  TestClient second(server);
  first.login({}, 1);
  second.login({}, 2);
  const auto log_in = [&](TestClient& client, const char* initiator) {
    InitiatorPdu login =
        login_pdu(keys({initiator, "TargetName=iqn.2026-11.org.mariner:disk"}), kOperationalToFull);
    login.bhs[13] = std::byte{3};
    return client.send(login).at(0).u16(36);
  };
  TestClient third(server);
  EXPECT_EQ(log_in(third, "InitiatorName=iqn.2026-11.test:host"), 0x0302);
  EXPECT_EQ(server.observer.ended.at(0).detail,
            "sessions_per_initiator_max: allowed 2, which this initiator has already");
  EXPECT_EQ(server.registry->counters().limit_refusals, 1u);
  TestClient other(server);
  EXPECT_EQ(log_in(other, "InitiatorName=iqn.2026-11.test:other"), 0);
}

// RFC 7143 4.4.3.1 and 6.3.5: the same ISID to another portal group is another session.
TEST(SessionRegistryTest, APortalGroupIsAnotherTargetPort) {
  TestServer server;
  TestClient first(server, 1);
  TestClient second(server, 2);
  first.login({}, 1);
  EXPECT_EQ(server.device().attached.target_port, 1);
  second.login({}, 1);
  EXPECT_EQ(server.device().attached.target_port, 2);
  EXPECT_EQ(server.registry->size(), 2u);
  TestClient again(server, 2);
  again.login({}, 1);
  EXPECT_TRUE(second.connection.closing());
  EXPECT_FALSE(first.connection.closing());
}

TEST(SessionRegistryTest, ARedirectionIsNoFailure) {
  TestServer server;
  server.directory.elsewhere = {.address = "192.0.2.9:3260", .permanent = false};
  TestClient client(server);
  const auto replies = client.send(login_pdu(
      keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"}),
      kOperationalToFull));
  EXPECT_EQ(replies.at(0).u16(36), 0x0101);
  EXPECT_EQ(text_of(replies.at(0).data), keys({"TargetAddress=192.0.2.9:3260"}));
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kRedirected);
  EXPECT_EQ(server.registry->counters().login_failures, 0u);
  EXPECT_EQ(server.registry->counters().redirections, 1u);
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

// RFC 7143 4.3: anybody may open one, most often without an account.
TEST(SessionRegistryTest, DiscoverySessionsTakeNoNormalOnesPlace) {
  Options options;
  options.sessions_max = 2;
  options.initiator_sessions_max = 2;
  TestServer server(options);
  std::vector<std::unique_ptr<TestClient>> discoveries;
  for (int i = 0; i < 3; ++i) {
    discoveries.push_back(std::make_unique<TestClient>(server));
    discoveries.back()->login_discovery();
  }
  TestClient first(server);
  first.login({}, 1);
  TestClient second(server);
  second.login({}, 2);
  EXPECT_EQ(server.registry->size(), 5u);
  discoveries.push_back(std::make_unique<TestClient>(server));
  discoveries.back()->login_discovery();
  EXPECT_EQ(server.registry->size(), 6u) << "and normal ones take none of theirs";
  EXPECT_TRUE(server.observer.ended.empty());
}

TEST(SessionRegistryTest, OneDiscoverySessionTooManyEndsTheOldest) {
  TestServer server;
  TestClient normal(server);
  normal.login();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (std::size_t i = 0; i < server.options.discovery_sessions_max + 1; ++i) {
    EXPECT_TRUE(server.observer.ended.empty());
    clients.push_back(std::make_unique<TestClient>(server));
    clients.back()->login_discovery();
  }
  ASSERT_EQ(server.observer.ended.size(), 1u);
  EXPECT_EQ(server.observer.ended[0].reason, EndReason::kCrowdedOut);
  EXPECT_EQ(server.observer.ended[0].detail, "64 discovery sessions");
  EXPECT_TRUE(clients[0]->connection.closing());
  EXPECT_FALSE(clients[1]->connection.closing());
  EXPECT_FALSE(normal.connection.closing());
  EXPECT_EQ(clients.back()->send(text_pdu(keys({"SendTargets=All"}))).size(), 1u);
}

TEST(SessionRegistryTest, ADiscoverySessionEndsWhenItHasHadItsTime) {
  TestServer server;
  TestClient discovery(server);
  TestClient normal(server);
  discovery.login_discovery();
  normal.login();
  for (int i = 0; i < 3; ++i) {
    server.executor.now += std::chrono::seconds(20);
    for (TestClient* const client : {&discovery, &normal}) {
      client->send(nop_out_pdu(kReservedTag, 1));  // it is there
      client->connection.tick();
    }
    EXPECT_FALSE(discovery.connection.closing());
  }
  server.executor.now += std::chrono::seconds(1);
  discovery.connection.tick();
  normal.connection.tick();
  EXPECT_TRUE(discovery.connection.closing());
  EXPECT_FALSE(normal.connection.closing());
  ASSERT_EQ(server.observer.ended.size(), 1u);
  EXPECT_EQ(server.observer.ended[0].reason, EndReason::kDiscoveryOver);
}

// Whose name it gives is not known to be it.
TEST(SessionRegistryTest, ADiscoverySessionTakesNothingOfAnInitiatorsMemory) {
  Options options;
  options.initiator_payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient discovery(server);
  discovery.login_discovery();
  discovery.feed(text_pdu(keys({"SendTargets=All"})).wire());  // the answer is not taken
  TestClient normal(server);
  normal.login();
  const auto read = [](std::uint32_t n) {
    return command_pdu({.itt = n,
                        .cmd_sn = n,
                        .expected_bytes = 65536,
                        .flags = kFinal | kRead,
                        .cdb = read10(0, 128)});
  };
  server.device().hold = true;
  normal.send(read(1));
  EXPECT_EQ(server.device().executed, 1u);
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
