#include "server/iscsi/task_management.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

using Function = scsi::TaskManagementFunction;

class TaskManagementTest : public testing::Test {
 protected:
  TaskManagementTest() {
    server.device().hold = true;
    client.login({}, 1);
    other.login({}, 2);
  }
  // A read that the device holds.
  void start(TestClient& from, std::uint32_t itt, std::uint32_t cmd_sn, std::uint64_t lun = 0) {
    EXPECT_TRUE(from.send(command_pdu({.itt = itt,
                                       .cmd_sn = cmd_sn,
                                       .lun = lun,
                                       .expected_bytes = 512,
                                       .flags = kFinal | kRead,
                                       .cdb = read10(0, 1)}))
                    .empty());
  }
  void answer_all() {
    while (!server.device().pending.empty()) server.device().answer_oldest();
  }
  static void expect_outcome(const std::vector<TargetPdu>& pdus, std::uint8_t outcome) {
    ASSERT_EQ(pdus.size(), 1u);
    EXPECT_EQ(pdus[0].opcode(), Opcode::kTaskManagementResponse);
    EXPECT_EQ(pdus[0].u8(2), outcome);
    EXPECT_EQ(pdus[0].itt(), 100u);
  }

  TestServer server;
  TestClient client{server};
  TestClient other{server};
};

TEST_F(TaskManagementTest, AnAbortedTaskIsNeverAnswered) {
  start(client, 5, 1);
  ASSERT_EQ(server.device().pending.back().command.tag, scsi::TaskTag{5});
  expect_outcome(client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1})),
                 0);
  EXPECT_EQ(server.device().aborted, scsi::TaskTag{5}) << "that command, and no other";
  answer_all();
  EXPECT_TRUE(client.take().empty());
  EXPECT_EQ(server.device().functions, std::vector{Function::kAbortTask});
}

TEST_F(TaskManagementTest, TheAnswerWaitsForTheDevice) {
  server.device().hold_manage = true;
  start(client, 5, 1);
  EXPECT_TRUE(
      client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1})).empty());
  answer_all();
  EXPECT_TRUE(client.take().empty());
  server.device().managed.front().done();
  expect_outcome(client.take(), 0);
}

TEST_F(TaskManagementTest, ATaskThatTheDeviceNeverAnswersGivesItsPlaceBack) {
  start(client, 5, 1);
  const auto pdus =
      client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1}));
  EXPECT_EQ(pdus.at(0).max_cmd_sn(), 1u + 128u);
  server.device().pending.clear();
  start(client, 5, 2);
}

TEST_F(TaskManagementTest, ATaskThatWaitsForDataIsAbortedToo) {
  const auto r2t = client.send(command_pdu(
      {.itt = 5, .expected_bytes = 512, .flags = kFinal | kWrite, .cdb = write10(0, 1)}));
  expect_outcome(client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1})),
                 0);
  EXPECT_TRUE(
      client.send(data_out_pdu({.itt = 5, .ttt = r2t.at(0).ttt(), .data = pattern(512)})).empty())
      << "data under way is dropped";
  EXPECT_EQ(server.device().executed, 0u);
}

TEST_F(TaskManagementTest, AbortOfNoTask) {
  start(client, 5, 1);
  answer_all();
  client.take();
  expect_outcome(client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1})),
                 1);
}

TEST_F(TaskManagementTest, AbortOfATaskThatNeverArrived) {
  expect_outcome(client.send(management_pdu({.referenced_itt = 5, .cmd_sn = 2, .ref_cmd_sn = 1})),
                 0);
  start(client, 6, 2);
}

TEST_F(TaskManagementTest, NoSuchLun) {
  expect_outcome(client.send(management_pdu(
                     {.function = TaskManagement::kLogicalUnitReset, .lun = 0x0007000000000000})),
                 2);
}

TEST_F(TaskManagementTest, WhatIsNotSupported) {
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kClearAca})), 5);
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kTaskReassign})), 4);
  expect_outcome(client.send(management_pdu({.function = static_cast<TaskManagement>(99)})), 255);
}

TEST_F(TaskManagementTest, AbortTaskSetIsOneSessionsAndOneLuns) {
  start(client, 5, 1);
  start(client, 6, 2, TestDevice::kLun1);
  start(other, 7, 1);
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kAbortTaskSet})), 0);
  answer_all();
  const auto mine = client.take();
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].itt(), 6u);
  EXPECT_EQ(other.take().size(), 1u);
}

TEST_F(TaskManagementTest, ALunResetEndsTheTasksOfAllSessions) {
  start(client, 5, 1);
  start(other, 7, 1);
  start(other, 8, 2, TestDevice::kLun1);
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kLogicalUnitReset})), 0);
  answer_all();
  EXPECT_TRUE(client.take().empty());
  const auto others = other.take();
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].itt(), 8u);
}

// RFC 7143 4.2.2.1: its number is received when all of it is, or none after it is.
TEST_F(TaskManagementTest, ACommandThatIsHalfHereComesAfterTheResetOfAnotherHost) {
  for (const auto function : {TaskManagement::kLogicalUnitReset, TaskManagement::kClearTaskSet,
                              TaskManagement::kTargetWarmReset}) {
    const std::uint32_t n = 1 + 2 * static_cast<std::uint32_t>(server.device().functions.size());
    const Bytes wire = command_pdu({.itt = n,
                                    .cmd_sn = n,
                                    .expected_bytes = 512,
                                    .flags = kFinal | kWrite,
                                    .cdb = write10(0, 1),
                                    .data = pattern(512)})
                           .wire();
    client.feed(std::span(wire).first(100));
    expect_outcome(other.send(management_pdu({.function = function})), 0);
    client.feed(std::span(wire).subspan(100));
    start(client, n + 1, n + 1);
    answer_all();
    const auto pdus = client.take();
    ASSERT_EQ(pdus.size(), 2u);
    EXPECT_EQ(pdus[0].itt(), n);
    EXPECT_EQ(pdus[1].itt(), n + 1);
    EXPECT_EQ(pdus[1].exp_cmd_sn(), n + 2);
    EXPECT_EQ(pdus[1].max_cmd_sn(), n + 1 + 128);
    EXPECT_FALSE(client.connection.closing());
  }
}

// It has no number that could be missed.
TEST_F(TaskManagementTest, AnImmediateCommandThatIsHalfHereIsGone) {
  const Bytes wire = command_pdu({.itt = 5,
                                  .expected_bytes = 512,
                                  .flags = kFinal | kWrite,
                                  .immediate = true,
                                  .cdb = write10(0, 1),
                                  .data = pattern(512)})
                         .wire();
  client.feed(std::span(wire).first(100));
  expect_outcome(other.send(management_pdu({.function = TaskManagement::kLogicalUnitReset})), 0);
  EXPECT_TRUE(client.send_bytes(std::span(wire).subspan(100)).empty());
  EXPECT_EQ(server.device().executed, 0u);
  start(client, 5, 1);
}

TEST_F(TaskManagementTest, TheFlatSpaceFormOfALunIsTheSameLun) {
  start(client, 5, 1, TestDevice::kLun1 | (0x40ull << 56));
  expect_outcome(client.send(management_pdu(
                     {.function = TaskManagement::kLogicalUnitReset, .lun = TestDevice::kLun1})),
                 0);
  answer_all();
  EXPECT_TRUE(client.take().empty());
}

TEST_F(TaskManagementTest, AWarmResetEndsEveryTask) {
  start(client, 5, 1, TestDevice::kLun1);
  start(other, 7, 1);
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kTargetWarmReset})), 0);
  answer_all();
  EXPECT_TRUE(client.take().empty());
  EXPECT_TRUE(other.take().empty());
  EXPECT_EQ(server.device().functions, std::vector{Function::kTargetReset});
  EXPECT_FALSE(client.connection.closing());
}

TEST_F(TaskManagementTest, AColdResetAlsoEndsTheSessions) {
  expect_outcome(client.send(management_pdu({.function = TaskManagement::kTargetColdReset})), 0);
  EXPECT_TRUE(client.connection.closing());
  EXPECT_TRUE(other.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kTargetReset);
}

TEST_F(TaskManagementTest, NothingAfterAColdResetIsHeard) {
  Bytes wire = management_pdu({.function = TaskManagement::kTargetColdReset}).wire();
  const Bytes write =
      command_pdu({.expected_bytes = 512, .flags = kFinal | kWrite, .cdb = write10(0, 1)}).wire();
  wire.insert(wire.end(), write.begin(), write.end());
  client.feed(wire);
  expect_outcome(client.take(), 0);
  EXPECT_EQ(server.device().executed, 0u);
}

TEST_F(TaskManagementTest, FunctionsUnderWayAreBounded) {
  server.device().hold_manage = true;
  const auto reset = management_pdu({.function = TaskManagement::kLogicalUnitReset});
  for (std::uint32_t i = 0; i < server.options.immediate_commands_max; ++i) {
    EXPECT_TRUE(client.send(reset).empty());
  }
  const auto pdus = client.send(reset);
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_EQ(pdus[0].u8(2), 0x06);
}

}  // namespace
}  // namespace mariner::iscsi
