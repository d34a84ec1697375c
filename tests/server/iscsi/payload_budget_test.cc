#include "server/iscsi/payload_budget.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

InitiatorPdu read_of(std::uint32_t itt, std::uint16_t blocks, std::uint32_t cmd_sn = 1) {
  return command_pdu({.itt = itt,
                      .cmd_sn = cmd_sn,
                      .expected_bytes = blocks * 512u,
                      .flags = kFinal | kRead,
                      .cdb = read10(0, blocks)});
}

Options tight() {
  Options options;
  options.initiator_payload_bytes_max = 64 * 1024;
  return options;
}

TEST(PayloadBudgetTest, OneInitiatorHasOneForAllItsSessions) {
  PayloadBudgets budgets(100);
  const auto first = budgets.of("iqn.a");
  EXPECT_EQ(budgets.of("iqn.a"), first);
  EXPECT_NE(budgets.of("iqn.b"), first);
  EXPECT_TRUE(first->fits(1000)) << "one alone always does";
  first->change(0, 60);
  EXPECT_TRUE(first->fits(40));
  EXPECT_FALSE(first->fits(41));
  first->change(60, 10);
  EXPECT_EQ(first->used(), 10u);
  EXPECT_TRUE(first->fits(90));
}

TEST(PayloadBudgetTest, SessionsOfOneInitiatorWaitForEachOther) {
  TestServer server(tight());
  server.device().hold = true;
  TestClient first(server);
  TestClient second(server);
  first.login({}, 1);
  second.login({}, 2);
  first.send(read_of(1, 128));
  second.send(read_of(1, 128));
  ASSERT_EQ(server.device().pending.size(), 1u) << "64 KiB: the second waits";
  server.registry->feed_starved();
  EXPECT_EQ(server.device().pending.size(), 1u);

  server.device().answer_oldest();
  server.registry->feed_starved();
  EXPECT_TRUE(server.device().pending.empty()) << "what was not sent yet counts too";
  EXPECT_FALSE(first.take().empty());
  server.registry->feed_starved();
  EXPECT_EQ(server.device().pending.size(), 1u);
}

TEST(PayloadBudgetTest, AnotherInitiatorDoesNotWait) {
  TestServer server(tight());
  server.device().hold = true;
  TestClient first(server);
  first.login({}, 1);
  first.send(read_of(1, 128));
  TestClient other(server);
  other.send(login_pdu(
      keys({"InitiatorName=iqn.2026-11.test:other", "TargetName=iqn.2026-11.org.mariner:disk"}),
      kOperationalToFull));
  other.send(read_of(1, 128));
  EXPECT_EQ(server.device().pending.size(), 2u);
}

TEST(PayloadBudgetTest, AConnectionThatEndsGivesBackWhatItHeld) {
  TestServer server(tight());
  TestClient second(server);
  {
    TestClient first(server);
    first.login({}, 1);
    first.feed(read_of(1, 128).wire());  // answered, and not taken
    second.login({}, 2);
    server.device().hold = true;
    second.send(read_of(1, 128));
    EXPECT_TRUE(server.device().pending.empty());
  }
  server.registry->feed_starved();
  EXPECT_EQ(server.device().pending.size(), 1u);
}

}  // namespace
}  // namespace mariner::iscsi
