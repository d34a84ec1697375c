#include "server/iscsi/session.h"

#include <gtest/gtest.h>

#include "proto/crc32c.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

InitiatorPdu read_pdu(std::uint32_t n, std::uint16_t blocks = 1) {
  return command_pdu({.itt = n,
                      .cmd_sn = n,
                      .expected_bytes = blocks * 512u,
                      .flags = kFinal | kRead,
                      .cdb = read10(0, blocks)});
}

InitiatorPdu write_pdu(std::uint32_t n, std::uint16_t blocks, Bytes immediate = {}) {
  return command_pdu({.itt = n,
                      .cmd_sn = n,
                      .expected_bytes = blocks * 512u,
                      .flags = kFinal | kWrite,
                      .cdb = write10(0, blocks),
                      .data = std::move(immediate)});
}

TEST(SessionTest, TheWindowBoundsWhatIsOutstanding) {
  Options options;
  options.command_window = 3;
  TestServer server(options);
  server.device().hold = true;
  TestClient client(server);
  client.login();
  for (std::uint32_t n = 1; n <= 3; ++n) client.send(read_pdu(n));
  client.send(read_pdu(4));
  EXPECT_EQ(server.device().executed, 3u) << "the fourth is beyond MaxCmdSN";
  server.device().answer_oldest();
  EXPECT_EQ(client.take().at(0).max_cmd_sn(), 4u);
  client.send(read_pdu(4));
  EXPECT_EQ(server.device().executed, 4u);
}

TEST(SessionTest, ImmediateCommandsAreBounded) {
  Options options;
  options.immediate_commands_max = 2;
  TestServer server(options);
  server.device().hold = true;
  TestClient client(server);
  client.login();
  const auto immediate = [](std::uint32_t itt) {
    return command_pdu({.itt = itt, .cmd_sn = 1, .immediate = true});
  };
  EXPECT_TRUE(client.send(immediate(1)).empty());
  EXPECT_TRUE(client.send(immediate(2)).empty());
  const auto pdus = client.send(immediate(3));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_EQ(pdus[0].u8(2), 0x06);
  server.device().answer_oldest();
  client.take();
  EXPECT_TRUE(client.send(immediate(3)).empty());
}

TEST(SessionTest, AWriteThatDoesNotFitWaitsBeforeItsMemoryIsTaken) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  server.device().hold = true;
  TestClient client(server);
  client.login();
  ASSERT_EQ(client.send(write_pdu(1, 128)).size(), 1u) << "64 KiB: an R2T";
  const std::uint64_t held = Payload::total_bytes();
  EXPECT_TRUE(client.send(write_pdu(2, 128)).empty());
  EXPECT_TRUE(client.send(read_pdu(3)).empty());
  EXPECT_EQ(Payload::total_bytes(), held);
  EXPECT_EQ(server.device().executed, 0u) << "the read does not overtake";
  // A command without data does.
  client.send(command_pdu({.itt = 9, .cmd_sn = 4}));
  EXPECT_EQ(server.device().executed, 1u);
}

TEST(SessionTest, WaitingCommandsGoOnInOrderWhenMemoryIsBack) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient client(server);
  client.login();
  const auto r2t = client.send(write_pdu(1, 128));
  // Its immediate data is kept while it waits.
  EXPECT_TRUE(client.send(write_pdu(2, 128, pattern(4096, 9))).empty());
  EXPECT_TRUE(client.send(read_pdu(3, 64)).empty());
  const auto pdus =
      client.send(data_out_pdu({.itt = 1, .ttt = r2t.at(0).ttt(), .data = pattern(65536)}));
  ASSERT_EQ(pdus.size(), 2u) << "the first's response, the second's R2T";
  EXPECT_EQ(pdus[0].itt(), 1u);
  ASSERT_EQ(pdus[1].opcode(), Opcode::kR2t);
  EXPECT_EQ(pdus[1].u32(40), 4096u);
  const Bytes rest = pattern(65536 - 4096, 3);
  const auto last =
      client.send(data_out_pdu({.itt = 2, .ttt = pdus[1].ttt(), .offset = 4096, .data = rest}));
  EXPECT_EQ(last.at(0).itt(), 2u);
  EXPECT_EQ(last.at(1).itt(), 3u);
  const auto written = server.device().written.at(1).bytes();
  EXPECT_EQ(Bytes(written.begin(), written.begin() + 4096), pattern(4096, 9));
  EXPECT_EQ(Bytes(written.begin() + 4096, written.end()), rest);
}

// Its data moves to memory of its own size; so do the CRCs that are known of it.
TEST(SessionTest, WhatArrivedBeforeMemoryWasThereKeepsItsCrcs) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"DataDigest=CRC32C", "FirstBurstLength=16384"}));
  const auto r2t = client.send(write_pdu(1, 128));
  EXPECT_TRUE(client.send(write_pdu(2, 64, pattern(9000, 9))).empty());
  const auto pdus =
      client.send(data_out_pdu({.itt = 1, .ttt = r2t.at(0).ttt(), .data = pattern(65536)}));
  client.send(data_out_pdu(
      {.itt = 2, .ttt = pdus.at(1).ttt(), .offset = 9000, .data = pattern(32768 - 9000, 3)}));
  const Payload& written = server.device().written.at(1);
  const auto crc = [&](std::size_t i) {
    return crc32c(written.bytes().subspan(i * kBlockBytes, kBlockBytes));
  };
  for (const std::size_t i : {0u, 1u, 3u, 7u}) EXPECT_EQ(written.block_crc(i), crc(i)) << i;
  EXPECT_EQ(written.block_crc(2), std::nullopt) << "of two segments";
}

TEST(SessionTest, UnsentDataInHoldsMemoryToo) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"MaxRecvDataSegmentLength=262144"}));
  // Both at once: the first's data is not sent yet when the second comes.
  Bytes wire = read_pdu(1, 128).wire();
  const Bytes second = read_pdu(2, 128).wire();
  wire.insert(wire.end(), second.begin(), second.end());
  client.feed(wire);
  EXPECT_EQ(server.device().executed, 1u);
  const auto pdus = client.take();
  EXPECT_EQ(server.device().executed, 2u);
  EXPECT_EQ(pdus.size(), 2u);
}

TEST(SessionTest, AnAbortedCommandDoesNotWaitAnyMore) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient client(server);
  client.login();
  client.send(write_pdu(1, 128));
  client.send(write_pdu(2, 128));
  client.send(management_pdu({.itt = 50, .referenced_itt = 2, .cmd_sn = 3, .ref_cmd_sn = 2}));
  const auto pdus =
      client.send(management_pdu({.itt = 51, .referenced_itt = 1, .cmd_sn = 3, .ref_cmd_sn = 1}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(client.send(read_pdu(3)).size(), 1u);
}

TEST(SessionTest, ATransferBeyondTheBoundEndsInCheckCondition) {
  Options options;
  options.transfer_bytes_max = 1024;
  TestServer server(options);
  TestClient client(server);
  client.login();
  const auto pdus = client.send(write_pdu(1, 3, pattern(1536)));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].u8(3), 0x02);
  EXPECT_EQ(pdus[0].data.at(14), std::byte{0x24});
  EXPECT_EQ(server.device().executed, 0u);
}

TEST(SessionTest, ExpectedLengthLimitsTheDevicesPayload) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(command_pdu({.expected_bytes = 700,
                                             .flags = kFinal | kWrite,
                                             .cdb = write10(0, 2),
                                             .data = pattern(700)}));
  EXPECT_EQ(server.device().written.at(0).size(), 700u);
  EXPECT_EQ(pdus.at(0).u8(1), 0x84);  // overflow
  EXPECT_EQ(pdus.at(0).u32(44), 324u);
}

TEST(SessionTest, DataBeyondTheCdbsIsTakenAndDropped) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(command_pdu({.expected_bytes = 2048,
                                             .flags = kFinal | kWrite,
                                             .cdb = write10(0, 2),
                                             .data = pattern(2048)}));
  const auto written = server.device().written.at(0).bytes();
  EXPECT_EQ(Bytes(written.begin(), written.end()), pattern(1024));
  EXPECT_EQ(pdus.at(0).u8(1), 0x82);  // underflow
  EXPECT_EQ(pdus.at(0).u32(44), 1024u);
}

TEST(SessionTest, AReadWithTheWriteFlagMovesNothing) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(command_pdu({.expected_bytes = 512,
                                             .flags = kFinal | kWrite,
                                             .cdb = read10(0, 1),
                                             .data = pattern(512)}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(pdus[0].u32(44), 512u);
}

// On the unit's size of then: whether a command's extent exists, and so whether it brings data.
TEST(SessionTest, ADecisionOnACommandsDataIsKeptWithIt) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"MaxConnections=2"}));
  server.device().hold = true;
  server.device().unit_blocks = 100;
  client.send(write_pdu(2, 1, pattern(512)));  // waits for the first command
  server.device().unit_blocks = 200;
  client.send(read_pdu(1));
  ASSERT_EQ(server.device().pending.size(), 2u);
  EXPECT_EQ(server.device().pending[0].command.unit_blocks, 200u);
  EXPECT_EQ(server.device().pending[1].command.unit_blocks, 100u);
  server.device().answer_oldest();
  server.device().answer_oldest();
}

// Whether it was closed by the login that takes its place, or had ended before.
TEST(SessionTest, WhatAnEarlierSessionHasUnderWayEndsBeforeTheNextOneUsesTheUnit) {
  for (const bool reinstated : {false, true}) {
    TestServer server;
    TestDevice& device = server.device();
    device.hold = true;
    TestClient first(server);
    first.login();
    first.send(write_pdu(1, 1, pattern(512)));
    ASSERT_EQ(device.pending.size(), 1u);
    if (!reinstated) first.connection.end(EndReason::kPeerClosed, {});
    device.hold_manage = true;
    TestClient second(server);
    second.login();
    ASSERT_EQ(device.managed.size(), 1u);
    EXPECT_EQ(device.managed[0].function, scsi::TaskManagementFunction::kNexusReset);
    device.hold = false;
    EXPECT_TRUE(second.send(read_pdu(1)).empty());
    EXPECT_TRUE(second.send(write_pdu(2, 1, pattern(512))).empty());
    EXPECT_EQ(second.send(command_pdu({.itt = 3, .cmd_sn = 3})).size(), 1u)
        << "who asks whether the unit is there is answered";
    EXPECT_EQ(device.executed, 2u);
    device.answer_oldest();
    device.managed[0].done();
    EXPECT_EQ(device.executed, 4u);
    EXPECT_EQ(second.take().size(), 2u) << "the data with its status, and the other answer";
    EXPECT_FALSE(second.connection.closing());
  }
}

TEST(SessionTest, WithoutAnythingUnderWayNothingIsWaitedFor) {
  TestServer server;
  server.device().hold_manage = true;
  TestClient other(server);
  other.login({}, 2);
  {
    TestClient first(server);
    first.login();
    first.send(write_pdu(1, 1, pattern(512)));
    first.connection.end(EndReason::kPeerClosed, {});
  }
  TestClient third(server);
  third.login();
  EXPECT_TRUE(server.device().managed.empty());
}

TEST(SessionTest, CountsForTheAdministrator) {
  TestServer server;
  TestClient client(server);
  client.login();
  client.send(write_pdu(1, 1, pattern(512)));
  client.send(read_pdu(2, 4));
  server.device().hold = true;
  client.send(read_pdu(3));
  const SessionInfo info = server.registry->list().at(0);
  EXPECT_EQ(info.initiator, "iqn.2026-11.test:host");
  EXPECT_EQ(info.target, TestDirectory::kName);
  EXPECT_EQ(info.endpoints.address, "192.0.2.7:50000");
  EXPECT_EQ(info.commands, 3u);
  EXPECT_EQ(info.bytes_written, 512u);
  EXPECT_EQ(info.bytes_read, 2048u);
  EXPECT_EQ(info.outstanding, 1u);
  EXPECT_EQ(info.last_io, server.executor.now);
  EXPECT_FALSE(info.discovery);
  // Who asks whether the unit is there does not use it.
  server.executor.now += std::chrono::seconds(20);
  client.send(command_pdu({.itt = 4, .cmd_sn = 4}));
  EXPECT_EQ(server.registry->list().at(0).commands, 4u);
  EXPECT_EQ(server.registry->list().at(0).last_io, info.last_io);
}

}  // namespace
}  // namespace mariner::iscsi
