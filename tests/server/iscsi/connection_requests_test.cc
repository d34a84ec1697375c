// Sessions of several connections, and recovery from damaged PDUs.
#include <gtest/gtest.h>

#include "proto/crc32c.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

constexpr std::string_view kNames[] = {"InitiatorName=iqn.2026-11.test:host",
                                       "TargetName=iqn.2026-11.org.mariner:disk"};

InitiatorPdu joining_pdu(std::uint16_t tsih, std::uint16_t cid, std::string_view more = {}) {
  InitiatorPdu pdu =
      login_pdu(keys({kNames[0], kNames[1]}) + std::string(more), kOperationalToFull, 1, tsih);
  store_be(&pdu.bhs[20], cid);
  return pdu;
}

InitiatorPdu read_pdu(std::uint32_t n, std::uint16_t blocks = 1, std::uint32_t exp_stat_sn = 0) {
  InitiatorPdu pdu = command_pdu({.itt = n,
                                  .cmd_sn = n,
                                  .expected_bytes = blocks * 512u,
                                  .flags = kFinal | kRead,
                                  .cdb = read10(0, blocks)});
  store_be(&pdu.bhs[28], exp_stat_sn);
  return pdu;
}

InitiatorPdu write_pdu(std::uint32_t n, std::uint16_t blocks, Bytes immediate) {
  return command_pdu({.itt = n,
                      .cmd_sn = n,
                      .expected_bytes = blocks * 512u,
                      .flags = kFinal | kWrite,
                      .cdb = write10(0, blocks),
                      .data = std::move(immediate)});
}

class TwoConnectionsTest : public testing::Test {
 protected:
  TwoConnectionsTest() {
    first.login(keys({"MaxConnections=2"}));
    tsih = server.registry->list().at(0).tsih;
    EXPECT_EQ(second.send(joining_pdu(tsih, 1)).at(0).u16(36), 0);
  }

  TestServer server;
  TestClient first{server};
  TestClient second{server};
  std::uint16_t tsih = 0;
};

TEST_F(TwoConnectionsTest, AreOneSession) {
  EXPECT_EQ(server.registry->size(), 1u);
  EXPECT_EQ(server.registry->list()[0].connections, 2u);
  EXPECT_EQ(server.observer.opened.size(), 1u);
  ASSERT_EQ(server.observer.joined.size(), 1u);
  EXPECT_EQ(server.observer.joined[0].connections, 2u);
}

TEST_F(TwoConnectionsTest, CommandsActInOrderAndAreAnsweredWhereTheyCame) {
  EXPECT_TRUE(second.send(read_pdu(2)).empty()) << "it waits for 1";
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_EQ(first.send(read_pdu(1)).at(0).itt(), 1u);
  EXPECT_EQ(second.take().at(0).itt(), 2u);
  EXPECT_EQ(first.send(read_pdu(3)).at(0).exp_cmd_sn(), 4u);
  EXPECT_TRUE(second.take().empty());
}

TEST_F(TwoConnectionsTest, DataGoesToTheCommandOfItsConnectionOnly) {
  const auto r2t = first.send(write_pdu(1, 2, {}));
  ASSERT_EQ(r2t.at(0).opcode(), Opcode::kR2t);
  const auto data = data_out_pdu({.itt = 1, .ttt = r2t[0].ttt(), .data = pattern(1024)});
  EXPECT_TRUE(second.send(data).empty());
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_EQ(first.send(data).at(0).opcode(), Opcode::kScsiResponse);
}

TEST_F(TwoConnectionsTest, EarlyDataIsKeptForItsTurn) {
  EXPECT_TRUE(second.send(write_pdu(2, 1, pattern(512))).empty());
  EXPECT_TRUE(second.send(write_pdu(3, 1, {})).empty()) << "no R2T before its turn";
  first.send(read_pdu(1));
  const auto pdus = second.take();
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(pdus[1].opcode(), Opcode::kR2t);
  EXPECT_EQ(server.device().written.at(0).size(), 512u);
}

TEST_F(TwoConnectionsTest, LogoutOfOneLeavesTheOther) {
  server.device().hold = true;
  second.send(read_pdu(1));
  EXPECT_EQ(first.send(logout_pdu(LogoutReason::kCloseConnection, 1)).at(0).u8(2), 0);
  EXPECT_TRUE(second.connection.closing());
  EXPECT_FALSE(first.connection.closing());
  EXPECT_EQ(server.registry->list().at(0).connections, 1u);
  server.device().answer_oldest();
  EXPECT_TRUE(first.take().empty()) << "its answer went with its connection";
  EXPECT_EQ(first.send(logout_pdu(LogoutReason::kCloseConnection, 1)).at(0).u8(2), 1)
      << "no such CID";
  EXPECT_EQ(first.send(logout_pdu(LogoutReason::kCloseSession)).at(0).u8(2), 0);
  EXPECT_EQ(server.registry->size(), 0u);
}

TEST_F(TwoConnectionsTest, LogoutOfTheSessionEndsBoth) {
  first.send(logout_pdu(LogoutReason::kCloseSession));
  EXPECT_TRUE(first.connection.closing());
  EXPECT_TRUE(second.connection.closing());
  EXPECT_EQ(server.observer.ended.size(), 2u);
  EXPECT_EQ(server.registry->size(), 0u);
}

TEST_F(TwoConnectionsTest, ALostConnectionEndsTheSession) {
  second.connection.end(EndReason::kPeerClosed, {});
  EXPECT_TRUE(first.connection.closing());
  EXPECT_EQ(server.registry->size(), 0u);
}

TEST_F(TwoConnectionsTest, AFunctionWaitsForCommandsBeforeIt) {
  server.device().hold = true;
  second.send(read_pdu(2));
  EXPECT_TRUE(
      second.send(management_pdu({.function = TaskManagement::kLogicalUnitReset, .cmd_sn = 3}))
          .empty())
      << "1 may have been meant, too";
  first.send(read_pdu(1));
  EXPECT_EQ(second.take().at(0).opcode(), Opcode::kTaskManagementResponse);
  while (!server.device().pending.empty()) server.device().answer_oldest();
  EXPECT_TRUE(first.take().empty()) << "aborted";
}

TEST_F(TwoConnectionsTest, AFunctionForTheTargetTakesThemForReceived) {
  second.send(read_pdu(2));
  EXPECT_EQ(second.send(management_pdu({.function = TaskManagement::kTargetWarmReset, .cmd_sn = 3}))
                .at(0)
                .exp_cmd_sn(),
            3u);
  EXPECT_TRUE(first.send(read_pdu(1)).empty()) << "it is a duplicate now";
  EXPECT_EQ(first.send(read_pdu(3)).size(), 1u);
}

TEST_F(TwoConnectionsTest, AFunctionOfAnotherHostLosesNoNumberOfAHalfReceivedCommand) {
  TestClient other(server);
  other.login({}, 2);
  const Bytes wire = write_pdu(1, 1, pattern(512)).wire();
  first.feed(std::span(wire).first(100));
  EXPECT_TRUE(second.send(read_pdu(2)).empty()) << "it waits for 1";
  other.send(management_pdu({.function = TaskManagement::kTargetWarmReset}));
  EXPECT_TRUE(second.send(read_pdu(3)).empty());
  EXPECT_EQ(first.send_bytes(std::span(wire).subspan(100)).at(0).itt(), 1u);
  const auto pdus = second.take();
  ASSERT_EQ(pdus.size(), 1u) << "2 had come before the reset, 3 after it";
  EXPECT_EQ(pdus[0].itt(), 3u);
  EXPECT_EQ(pdus[0].exp_cmd_sn(), 4u);
  EXPECT_EQ(pdus[0].max_cmd_sn(), 3u + 128u);
}

// The command may be meant to come after the function, whose number is not behind it.
TEST_F(TwoConnectionsTest, AFunctionOfTheSessionItselfLeavesAHalfReceivedCommandAlone) {
  const Bytes wire = write_pdu(1, 1, pattern(512)).wire();
  first.feed(std::span(wire).first(100));
  EXPECT_EQ(second.send(management_pdu({.function = TaskManagement::kLogicalUnitReset})).size(),
            1u);
  EXPECT_EQ(first.send_bytes(std::span(wire).subspan(100)).at(0).itt(), 1u);
}

TEST_F(TwoConnectionsTest, AFunctionForTheTargetTakesAHalfReceivedCommandForReceived) {
  const Bytes wire = write_pdu(1, 1, pattern(512)).wire();
  first.feed(std::span(wire).first(100));
  second.send(management_pdu({.function = TaskManagement::kTargetWarmReset, .cmd_sn = 2}));
  EXPECT_TRUE(first.send_bytes(std::span(wire).subspan(100)).empty());
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_EQ(second.send(read_pdu(2)).size(), 1u);
}

TEST_F(TwoConnectionsTest, AHalfReceivedCommandThatIsAbortedHasHadItsNumber) {
  const Bytes wire = write_pdu(1, 1, pattern(512)).wire();
  first.feed(std::span(wire).first(100));
  const auto pdus =
      second.send(management_pdu({.referenced_itt = 1, .cmd_sn = 2, .ref_cmd_sn = 1}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].u8(2), 0) << "complete";
  EXPECT_TRUE(first.send_bytes(std::span(wire).subspan(100)).empty());
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_EQ(second.send(read_pdu(2)).size(), 1u);
}

TEST_F(TwoConnectionsTest, AFunctionOfAConnectionThatLeavesStillActs) {
  second.send(management_pdu({.function = TaskManagement::kAbortTaskSet, .cmd_sn = 2}));
  first.send(logout_pdu(LogoutReason::kCloseConnection, 1));
  first.send(read_pdu(1));
  EXPECT_EQ(server.device().functions.size(), 1u);
}

TEST_F(TwoConnectionsTest, TheSameCidTakesTheOldConnectionsPlace) {
  TestClient third(server);
  EXPECT_EQ(third.send(joining_pdu(tsih, 2)).at(0).u16(36), 0x0206) << "two are the most";
  TestClient again(server);
  EXPECT_EQ(again.send(joining_pdu(tsih, 1)).at(0).u16(36), 0);
  EXPECT_TRUE(second.connection.closing());
  EXPECT_FALSE(first.connection.closing());
  EXPECT_EQ(server.registry->list().at(0).connections, 2u);
}

TEST_F(TwoConnectionsTest, WhoJoinsMustBeTheSameAndAgreeWithTheSession) {
  TestClient third(server);
  InitiatorPdu other = joining_pdu(tsih, 2);
  other.bhs[13] = std::byte{9};  // ISID
  EXPECT_EQ(third.send(other).at(0).u16(36), 0x020a);
  TestClient fourth(server);
  EXPECT_EQ(fourth.send(joining_pdu(tsih, 1, keys({"MaxBurstLength=4096"}))).at(0).u16(36), 0x0200);
  EXPECT_FALSE(second.connection.closing());
}

TEST_F(TwoConnectionsTest, AReinstatedSessionTakesBothAlong) {
  TestClient third(server);
  third.login();
  EXPECT_TRUE(first.connection.closing());
  EXPECT_TRUE(second.connection.closing());
  EXPECT_EQ(server.registry->size(), 1u);
}

TEST(OnlyConnectionTest, MayBeReplacedByItsCid) {
  TestServer server;
  TestClient first(server);
  first.login(keys({"MaxConnections=2"}));
  const auto before = server.registry->list().at(0);
  TestClient again(server);
  EXPECT_EQ(again.send(joining_pdu(before.tsih, 0)).at(0).u16(36), 0);
  EXPECT_TRUE(first.connection.closing());
  EXPECT_EQ(server.registry->list().at(0).id, before.id);
  EXPECT_EQ(again.send(read_pdu(1)).at(0).opcode(), Opcode::kDataIn);
}

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() {
    client.login(keys({"DataDigest=CRC32C", "ErrorRecoveryLevel=1", "MaxBurstLength=4096",
                       "MaxRecvDataSegmentLength=1024"}));
  }
  // Sends it with a wrong data digest.
  static std::vector<TargetPdu> send_damaged(TestClient& from, const InitiatorPdu& pdu) {
    Bytes wire = pdu.wire(from.header_digest, from.data_digest);
    wire.back() ^= std::byte{1};
    return from.send_bytes(wire);
  }
  std::vector<TargetPdu> send_damaged(const InitiatorPdu& pdu) { return send_damaged(client, pdu); }
  static InitiatorPdu snack_pdu(SnackRequest::Type type, std::uint32_t itt, std::uint32_t first,
                                std::uint32_t count, std::uint32_t tag = kReservedTag) {
    InitiatorPdu pdu = nop_out_pdu(itt, tag);
    pdu.bhs[0] = std::byte{0x10};
    pdu.bhs[1] = static_cast<std::byte>(0x80u | static_cast<unsigned>(type));
    store_be(&pdu.bhs[40], first);
    store_be(&pdu.bhs[44], count);
    return pdu;
  }
  static void expect_reject(const std::vector<TargetPdu>& pdus, std::uint8_t reason) {
    ASSERT_FALSE(pdus.empty());
    EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
    EXPECT_EQ(pdus[0].u8(2), reason);
  }
  static void expect_same(const TargetPdu& a, const TargetPdu& b) {
    EXPECT_EQ(text_of(std::span(a.bhs).first(28)), text_of(std::span(b.bhs).first(28)));
    EXPECT_EQ(text_of(std::span(a.bhs).subspan(36)), text_of(std::span(b.bhs).subspan(36)));
    EXPECT_EQ(a.data, b.data);
  }

  TestServer server;
  TestClient client{server};
};

TEST_F(RecoveryTest, ADamagedCommandHasNotComeAndIsSentAgain) {
  expect_reject(send_damaged(write_pdu(1, 1, pattern(512))), 0x02);
  EXPECT_FALSE(client.connection.closing());
  EXPECT_TRUE(client.send(read_pdu(2)).empty()) << "it waits for 1";
  const auto pdus = client.send(write_pdu(1, 1, pattern(512)));
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_EQ(pdus[0].itt(), 1u);
  EXPECT_EQ(pdus[1].itt(), 2u);
  EXPECT_EQ(server.device().written.at(0).size(), 512u);
  EXPECT_EQ(server.registry->counters().data_digest_errors, 1u);
}

TEST_F(RecoveryTest, DamagedDataIsAskedForAgain) {
  const auto r2t = client.send(write_pdu(1, 4, {}));
  ASSERT_EQ(r2t.at(0).opcode(), Opcode::kR2t);
  const Bytes data = pattern(2048);
  const auto half = [&](std::size_t from, std::uint32_t ttt, std::uint32_t data_sn, bool final) {
    return data_out_pdu({.itt = 1,
                         .ttt = ttt,
                         .data_sn = data_sn,
                         .offset = static_cast<std::uint32_t>(from),
                         .final = final,
                         .data = Bytes(data.begin() + static_cast<std::ptrdiff_t>(from),
                                       data.begin() + static_cast<std::ptrdiff_t>(from) + 1024)});
  };
  EXPECT_TRUE(client.send(half(0, r2t[0].ttt(), 0, false)).empty());
  const auto again = send_damaged(half(1024, r2t[0].ttt(), 1, true));
  expect_reject(again, 0x02);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1].opcode(), Opcode::kR2t);
  EXPECT_EQ(again[1].u32(36), 1u) << "R2TSN";
  EXPECT_EQ(again[1].u32(40), 1024u) << "offset";
  EXPECT_EQ(again[1].u32(44), 1024u);
  EXPECT_EQ(client.send(half(1024, again[1].ttt(), 0, true)).at(0).opcode(), Opcode::kScsiResponse);
  const Payload& written = server.device().written.at(0);
  EXPECT_EQ(text_of({written.data(), written.size()}), text_of(data));
}

// What was damaged may be asked for in other pieces: they are other bytes, too.
TEST_F(RecoveryTest, NoCrcOfDamagedDataStaysWithThePayload) {
  TestClient other(server);
  other.login(keys({"DataDigest=CRC32C", "ErrorRecoveryLevel=1", "MaxBurstLength=8192"}), 2);
  const Bytes data = pattern(8192);
  const auto part = [&](std::uint32_t ttt, std::uint32_t from, std::uint32_t to, bool final) {
    return data_out_pdu({.itt = 1,
                         .ttt = ttt,
                         .data_sn = from == 0 ? 0u : 1u,
                         .offset = from,
                         .final = final,
                         .data = Bytes(data.begin() + from, data.begin() + to)});
  };
  const auto r2t = other.send(write_pdu(1, 16, {}));
  ASSERT_EQ(r2t.at(0).opcode(), Opcode::kR2t);
  InitiatorPdu damaged = part(r2t[0].ttt(), 0, 8192, true);
  damaged.data[100] ^= std::byte{1};
  const auto again = send_damaged(other, damaged);
  ASSERT_EQ(again.size(), 2u);
  ASSERT_EQ(again[1].opcode(), Opcode::kR2t);
  EXPECT_TRUE(other.send(part(again[1].ttt(), 0, 2048, false)).empty());
  EXPECT_EQ(other.send(part(again[1].ttt(), 2048, 8192, true)).at(0).opcode(),
            Opcode::kScsiResponse);
  const Payload& written = server.device().written.at(0);
  EXPECT_EQ(text_of(written.bytes()), text_of(data));
  EXPECT_EQ(written.block_crc(0), std::nullopt) << "of two segments";
  EXPECT_EQ(written.block_crc(1), crc32c(written.bytes().subspan(kBlockBytes, kBlockBytes)));
}

TEST_F(RecoveryTest, AnR2tIsSentAgain) {
  const auto r2t = client.send(write_pdu(1, 4, {}));
  const auto again = client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 1, 0, 0));
  ASSERT_EQ(again.size(), 1u);
  expect_same(again[0], r2t.at(0));
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 1, 1, 1)), 0x03);
}

TEST_F(RecoveryTest, DataIsSentAgainAsItWas) {
  const auto sent = client.send(read_pdu(1, 8));
  ASSERT_EQ(sent.size(), 4u);
  const auto two = client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 1, 1, 2));
  ASSERT_EQ(two.size(), 2u);
  expect_same(two[0], sent[1]);
  expect_same(two[1], sent[2]);
  const auto all = client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 1, 0, 0));
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) expect_same(all[i], sent[i]);
  const auto status = client.send(snack_pdu(SnackRequest::Type::kStatus, kReservedTag, 0, 0));
  ASSERT_EQ(status.size(), 1u);
  expect_same(status[0], sent[3]);
}

TEST_F(RecoveryTest, AnswersOfAllKindsAreSentAgainUntilTheyAreAcknowledged) {
  const auto nop = client.send(nop_out_pdu(77, kReservedTag, pattern(40)));
  const auto managed = client.send(management_pdu({.referenced_itt = 5}));
  const auto written = client.send(write_pdu(1, 1, pattern(512)));
  const std::uint32_t first = nop.at(0).stat_sn();
  const auto run = client.send(snack_pdu(SnackRequest::Type::kStatus, kReservedTag, first, 2));
  ASSERT_EQ(run.size(), 2u);
  expect_same(run[0], nop[0]);
  expect_same(run[1], managed.at(0));
  client.send(read_pdu(2, 1, first + 2));
  const auto rest = client.send(snack_pdu(SnackRequest::Type::kStatus, kReservedTag, 0, 0));
  ASSERT_EQ(rest.size(), 2u);
  expect_same(rest[0], written.at(0));
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kStatus, kReservedTag, first, 1)), 0x04);
  EXPECT_FALSE(client.connection.closing());
}

TEST_F(RecoveryTest, UnderAnotherSegmentLengthAllDataIsSentAnew) {
  client.send(read_pdu(1, 8));
  client.send(text_pdu(keys({"MaxRecvDataSegmentLength=2048"})));
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 1, 1, 1)), 0x03);
  const auto anew = client.send(snack_pdu(SnackRequest::Type::kRData, 1, 0, 0, 0x1234));
  ASSERT_EQ(anew.size(), 3u);
  EXPECT_EQ(anew[0].data.size(), 2048u);
  EXPECT_EQ(anew[2].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(anew[2].u32(20), 0x1234u) << "the SNACK tag";
  EXPECT_EQ(anew[2].u32(36), 2u) << "ExpDataSN";
}

TEST_F(RecoveryTest, WhatCannotBeSentAgainIsRejected) {
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kDataOrR2t, 9, 0, 0)), 0x03);
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kDataAck, 9, 0, 0)), 0x08);
  expect_reject(client.send(snack_pdu(SnackRequest::Type::kRData, 9, 0, 0)), 0x03);
  EXPECT_FALSE(client.connection.closing());
  InitiatorPdu unknown = snack_pdu(SnackRequest::Type::kStatus, 1, 0, 0);
  unknown.bhs[1] = std::byte{0x87};
  expect_reject(client.send(unknown), 0x09);
  EXPECT_TRUE(client.connection.closing());
}

TEST_F(RecoveryTest, DamagedRequestsOfOtherKindsHaveNotCome) {
  expect_reject(send_damaged(nop_out_pdu(7, kReservedTag, pattern(8))), 0x02);
  EXPECT_EQ(client.send(nop_out_pdu(7, kReservedTag, pattern(8))).at(0).opcode(), Opcode::kNopIn);
}

TEST(RecoveryBoundsTest, WhatIsKeptCountsAndIsAskedFor) {
  Options options;
  options.payload_bytes_max = 8192;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1"}));
  const auto read = client.send(read_pdu(1, 16));
  ASSERT_FALSE(read.empty());
  const auto pdus = client.send(read_pdu(2, 1));
  ASSERT_EQ(pdus.size(), 1u) << "the second waits";
  EXPECT_EQ(pdus[0].opcode(), Opcode::kNopIn) << "until the initiator says that it has the first";
  InitiatorPdu answer = nop_out_pdu(kReservedTag, pdus[0].ttt());
  store_be(&answer.bhs[28], read.back().stat_sn() + 1);
  EXPECT_EQ(client.send(answer).at(0).opcode(), Opcode::kDataIn);
}

TEST(RecoveryBoundsTest, WhoNeverAcknowledgesIsClosed) {
  Options options;
  options.output_pdus_max = 16;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1"}));
  for (std::uint32_t i = 0; i < 40 && !client.connection.closing(); ++i) {
    client.send(nop_out_pdu(i, kReservedTag));
  }
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kProtocolError);
}

}  // namespace
}  // namespace mariner::iscsi
