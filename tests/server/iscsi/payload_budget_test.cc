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

InitiatorPdu write_of(std::uint32_t itt, Bytes immediate = {}) {
  return command_pdu({.itt = itt,
                      .cmd_sn = itt,
                      .expected_bytes = 65536,
                      .flags = kFinal | kWrite,
                      .cdb = write10(0, 128),
                      .data = std::move(immediate)});
}

TEST(PayloadBudgetTest, WhatIsKeptOfWaitingCommandsCounts) {
  PayloadBudgets budgets(100);
  const auto budget = budgets.of("iqn.a");
  EXPECT_TRUE(budget->keep(60)) << "nobody else needs it";
  EXPECT_TRUE(budget->fits(1000)) << "what is kept alone stops nobody";
  budget->change(0, 30);
  EXPECT_TRUE(budget->fits(10));
  EXPECT_FALSE(budget->fits(11));
  EXPECT_TRUE(budget->fits(60, 50)) << "its own data is there already";
  EXPECT_FALSE(budget->keep(11));
  budget->unkeep(60);
  budget->change(30, 100);
  EXPECT_TRUE(budget->keep(25)) << "a quarter, whatever is admitted";
  EXPECT_FALSE(budget->keep(1));
  EXPECT_EQ(budget->kept(), 25u);
}

TEST(PayloadBudgetTest, WhatIsKeptIsGivenBackWhenItsHolderEnds) {
  PayloadBudgets budgets(100);
  const auto budget = budgets.of("iqn.a");
  ASSERT_TRUE(budget->keep(60));
  ASSERT_TRUE(budget->keep(30));
  KeptBytes first(budget, 60);
  {
    KeptBytes other(budget, 30);
    KeptBytes moved = std::move(first);
    EXPECT_EQ(budget->kept(), 90u);
    first = std::move(other);
    EXPECT_EQ(budget->kept(), 90u);
  }
  EXPECT_EQ(budget->kept(), 30u);
  first = KeptBytes();
  EXPECT_EQ(budget->kept(), 0u);
}

TEST(PayloadBudgetTest, UnsolicitedDataThatDoesNotFitEndsInTaskSetFull) {
  TestServer server(tight());
  TestClient client(server);
  client.login();
  const auto r2t = client.send(write_of(1));
  ASSERT_EQ(r2t.size(), 1u) << "64 KiB: all there is";
  const std::uint64_t held = Payload::total_bytes();
  for (std::uint32_t itt = 2; itt <= 5; ++itt) {
    EXPECT_TRUE(client.send(write_of(itt, pattern(4096))).empty()) << "waits with its data";
  }
  EXPECT_EQ(Payload::total_bytes(), held + 4 * 4096);
  const auto refused = client.send(write_of(6, pattern(4096)));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].u8(3), static_cast<std::uint8_t>(scsi::Status::kTaskSetFull));
  EXPECT_EQ(Payload::total_bytes(), held + 4 * 4096);
  EXPECT_TRUE(client.send(write_of(7)).empty()) << "without data it may wait";

  // One after the other, all of them are carried out.
  auto asked = r2t;
  for (const std::uint32_t itt : {1u, 2u, 3u, 4u, 5u, 7u}) {
    server.registry->feed_starved();
    for (const auto& pdu : client.take()) asked.push_back(pdu);
    ASSERT_EQ(asked.back().opcode(), Opcode::kR2t) << itt;
    ASSERT_EQ(asked.back().itt(), itt);
    const std::uint32_t from = asked.back().u32(40);
    asked = client.send(data_out_pdu(
        {.itt = itt, .ttt = asked.back().ttt(), .offset = from, .data = pattern(65536 - from)}));
  }
  EXPECT_EQ(server.device().written.size(), 6u);
}

TEST(PayloadBudgetTest, AConnectionThatEndsGivesBackWhatItsWaitingCommandsKept) {
  TestServer server(tight());
  TestClient second(server);
  second.login({}, 2);
  ASSERT_EQ(second.send(write_of(1)).size(), 1u);
  {
    TestClient first(server);
    first.login({}, 1);
    for (std::uint32_t itt = 1; itt <= 4; ++itt) {
      EXPECT_TRUE(first.send(write_of(itt, pattern(4096))).empty());
    }
    EXPECT_EQ(second.send(write_of(2, pattern(4096))).size(), 1u) << "the quarter is used up";
  }
  EXPECT_TRUE(second.send(write_of(3, pattern(4096))).empty()) << "it may wait";
}

}  // namespace
}  // namespace mariner::iscsi
