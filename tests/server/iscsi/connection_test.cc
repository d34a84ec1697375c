#include "server/iscsi/connection.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

using std::chrono::seconds;

const std::string kUnsolicitedKeys = keys({"InitialR2T=No", "ImmediateData=Yes"});

TEST(ConnectionTest, ReadIsAnsweredByDataInWithStatus) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(
      command_pdu({.expected_bytes = 1024, .flags = kFinal | kRead, .cdb = read10(0, 2)}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kDataIn);
  EXPECT_EQ(pdus[0].u8(1), 0x81);  // F, S
  EXPECT_EQ(pdus[0].u8(3), 0);     // GOOD
  EXPECT_EQ(pdus[0].data, pattern(1024));
  EXPECT_EQ(pdus[0].exp_cmd_sn(), 2u);
  EXPECT_EQ(pdus[0].max_cmd_sn(), 1u + 128u);
}

// Nothing more may come from an initiator that waits: the answer must not wait for input.
TEST(ConnectionTest, AnAnswerThatCompletesLaterIsSentWithoutFurtherInput) {
  TestServer server;
  TestClient client(server);
  client.login();
  server.device().hold = true;
  EXPECT_TRUE(
      client
          .send(command_pdu({.expected_bytes = 1024, .flags = kFinal | kRead, .cdb = read10(0, 2)}))
          .empty());
  const std::size_t before = client.output_calls;
  server.device().answer_oldest();
  EXPECT_GT(client.output_calls, before);
  EXPECT_FALSE(client.take().empty());
}

TEST(ConnectionTest, StatSnCountsAnswersOnly) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto first = client.send(command_pdu(
      {.cmd_sn = 1, .expected_bytes = 512, .flags = kFinal | kRead, .cdb = read10(0, 1)}));
  const auto second = client.send(command_pdu(
      {.cmd_sn = 2, .expected_bytes = 512, .flags = kFinal | kRead, .cdb = read10(0, 1)}));
  EXPECT_EQ(first.back().stat_sn() + 1, second.back().stat_sn());
}

TEST(ConnectionTest, ImmediateDataReachesTheDeviceAsOnePayload) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(command_pdu({.expected_bytes = 4096,
                                             .flags = kFinal | kWrite,
                                             .cdb = write10(0, 8),
                                             .data = pattern(4096)}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  ASSERT_EQ(server.device().written.size(), 1u);
  const auto written = server.device().written[0].bytes();
  EXPECT_EQ(Bytes(written.begin(), written.end()), pattern(4096));
}

TEST(ConnectionTest, WriteWithoutImmediateDataIsSolicited) {
  TestServer server;
  TestClient client(server);
  client.login();
  auto pdus = client.send(
      command_pdu({.expected_bytes = 1024, .flags = kFinal | kWrite, .cdb = write10(0, 2)}));
  ASSERT_EQ(pdus.size(), 1u);
  ASSERT_EQ(pdus[0].opcode(), Opcode::kR2t);
  EXPECT_EQ(pdus[0].u32(40), 0u);
  EXPECT_EQ(pdus[0].u32(44), 1024u);
  const std::uint32_t ttt = pdus[0].ttt();
  EXPECT_NE(ttt, kReservedTag);
  const Bytes data = pattern(1024);
  EXPECT_TRUE(client
                  .send(data_out_pdu(
                      {.ttt = ttt, .final = false, .data = {data.begin(), data.begin() + 512}}))
                  .empty());
  pdus = client.send(data_out_pdu(
      {.ttt = ttt, .data_sn = 1, .offset = 512, .data = {data.begin() + 512, data.end()}}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  const auto written = server.device().written.at(0).bytes();
  EXPECT_EQ(Bytes(written.begin(), written.end()), data);
}

TEST(ConnectionTest, UnsolicitedDataFollowsImmediateData) {
  TestServer server;
  TestClient client(server);
  client.login(kUnsolicitedKeys);
  const Bytes data = pattern(1024);
  EXPECT_TRUE(client
                  .send(command_pdu({.expected_bytes = 1024,
                                     .flags = kWrite,
                                     .cdb = write10(0, 2),
                                     .data = {data.begin(), data.begin() + 512}}))
                  .empty());
  const auto pdus =
      client.send(data_out_pdu({.offset = 512, .data = {data.begin() + 512, data.end()}}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  const auto written = server.device().written.at(0).bytes();
  EXPECT_EQ(Bytes(written.begin(), written.end()), data);
}

TEST(ConnectionTest, LostDataOutFailsTheCommandAfterItsLastPdu) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto r2t = client.send(
      command_pdu({.expected_bytes = 1024, .flags = kFinal | kWrite, .cdb = write10(0, 2)}));
  const std::uint32_t ttt = r2t.at(0).ttt();
  EXPECT_TRUE(
      client.send(data_out_pdu({.ttt = ttt, .data_sn = 1, .final = false, .data = pattern(512)}))
          .empty());
  const auto pdus =
      client.send(data_out_pdu({.ttt = ttt, .data_sn = 0, .offset = 512, .data = pattern(512)}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(pdus[0].u8(3), 0x02);
  EXPECT_EQ(pdus[0].data.at(4), std::byte{0x0b});   // ABORTED COMMAND
  EXPECT_EQ(pdus[0].data.at(14), std::byte{0x47});  // PROTOCOL SERVICE CRC ERROR
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionTest, DataOutWithAForeignTransferTagEndsTheConnection) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto r2t = client.send(
      command_pdu({.expected_bytes = 512, .flags = kFinal | kWrite, .cdb = write10(0, 1)}));
  const auto pdus =
      client.send(data_out_pdu({.ttt = r2t.at(0).ttt() ^ 0x40000, .data = pattern(512)}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_EQ(pdus[0].u8(2), 0x04);
  EXPECT_TRUE(client.connection.closing());
}

TEST(ConnectionTest, DataOutOfAnUnknownTaskIsDropped) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_TRUE(client.send(data_out_pdu({.itt = 77, .ttt = 5, .data = pattern(512)})).empty());
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionTest, CommandsOutsideTheWindowAreIgnored) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_TRUE(client.send(command_pdu({.cmd_sn = 0})).empty());
  EXPECT_TRUE(client.send(command_pdu({.cmd_sn = 129})).empty());
  EXPECT_EQ(client.send(command_pdu({.cmd_sn = 1})).size(), 1u);
}

TEST(ConnectionTest, ASkippedCmdSnEndsTheConnection) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(command_pdu({.cmd_sn = 2}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_TRUE(client.connection.closing());
  ASSERT_EQ(server.observer.ended.size(), 1u);
  EXPECT_EQ(server.observer.ended[0].detail, "CmdSN: expected 1, found 2");
}

TEST(ConnectionTest, ATaskTagInUseIsRejected) {
  TestServer server;
  server.device().hold = true;
  TestClient client(server);
  client.login();
  EXPECT_TRUE(client.send(command_pdu({.itt = 9, .cmd_sn = 1})).empty());
  const auto pdus = client.send(command_pdu({.itt = 9, .cmd_sn = 2}));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_EQ(pdus[0].u8(2), 0x07);
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionTest, NopOutIsEchoed) {
  TestServer server;
  TestClient client(server);
  client.login();
  const auto pdus = client.send(nop_out_pdu(7, kReservedTag, bytes_of("ping")));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kNopIn);
  EXPECT_EQ(pdus[0].itt(), 7u);
  EXPECT_EQ(pdus[0].ttt(), kReservedTag);
  EXPECT_EQ(text_of(pdus[0].data), "ping");
}

TEST(ConnectionTest, NopOutWithoutTaskTagGetsNoAnswer) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_TRUE(client.send(nop_out_pdu(kReservedTag, kReservedTag)).empty());
}

TEST(ConnectionTest, AnIdleConnectionIsPingedAndASilentOneClosed) {
  TestServer server;
  TestClient client(server);
  client.login();
  server.executor.now += server.options.ping_interval + seconds(1);
  client.connection.tick();
  auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kNopIn);
  EXPECT_EQ(pdus[0].itt(), kReservedTag);
  EXPECT_NE(pdus[0].ttt(), kReservedTag);
  EXPECT_TRUE(client.send(nop_out_pdu(kReservedTag, pdus[0].ttt())).empty());
  server.executor.now += server.options.ping_interval + seconds(1);
  client.connection.tick();
  EXPECT_EQ(client.take().size(), 1u);
  server.executor.now += server.options.ping_time_max + seconds(1);
  client.connection.tick();
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kSilent);
}

TEST(ConnectionTest, ALoginMustEndInTime) {
  TestServer server;
  TestClient client(server);
  server.executor.now += server.options.login_time_max + seconds(1);
  client.connection.tick();
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kLoginTimeout);
}

// The fifth byte of "GET / HTTP/1.1" promises additional headers that never come.
TEST(ConnectionTest, WhatIsNoLoginEndsTheConnectionBeforeItsAdditionalHeadersCome) {
  TestServer server;
  TestClient client(server);
  InitiatorPdu pdu = nop_out_pdu(1, 0, {});
  pdu.ahs = pattern(188);
  Bytes wire = pdu.wire();
  wire.resize(kBhsBytes + 20);
  client.send_bytes(wire);
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kProtocolError);
}

TEST(ConnectionTest, LogoutIsAnsweredAndEndsTheSession) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_EQ(server.registry->size(), 1u);
  const auto pdus = client.send(logout_pdu(LogoutReason::kCloseSession));
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kLogoutResponse);
  EXPECT_EQ(pdus[0].u8(2), 0);
  EXPECT_EQ(server.registry->size(), 0u);
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kLogout);
}

TEST(ConnectionTest, LogoutOfAnotherConnectionIsRefused) {
  TestServer server;
  TestClient client(server);
  client.login();
  EXPECT_EQ(client.send(logout_pdu(LogoutReason::kCloseConnection, 9)).at(0).u8(2), 1);
  EXPECT_EQ(client.send(logout_pdu(LogoutReason::kRemoveConnectionForRecovery)).at(0).u8(2), 2);
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionTest, SnackAndUnknownOpcodesAreRejectedWithoutEndingTheSession) {
  TestServer server;
  TestClient client(server);
  client.login();
  InitiatorPdu snack = nop_out_pdu(1, kReservedTag);
  snack.bhs[0] = std::byte{0x10};
  EXPECT_EQ(client.send(snack).at(0).u8(2), 0x03);
  snack.bhs[0] = std::byte{0x1c};
  snack.data = pattern(700);
  const auto pdus = client.send(snack);
  EXPECT_EQ(pdus.at(0).u8(2), 0x05);
  EXPECT_EQ(pdus.at(0).data.size(), kBhsBytes);
  EXPECT_EQ(client.send(command_pdu({})).size(), 1u);
}

TEST(ConnectionTest, WhatIsNoLoginIsNotAnswered) {
  TestServer server;
  TestClient client(server);
  EXPECT_TRUE(client.send(command_pdu({})).empty());
  EXPECT_TRUE(client.connection.closing());
  ASSERT_EQ(server.observer.ended.size(), 1u);
  EXPECT_EQ(server.observer.ended[0].detail, "expected Login Request, found SCSI Command");
}

TEST(ConnectionTest, AbsurdLengthsEndTheConnectionBeforeMemoryIsTaken) {
  TestServer server;
  TestClient client(server);
  InitiatorPdu pdu = login_pdu("", kOperationalToFull);
  Bytes wire = pdu.wire();
  store_be24(&wire[5], 0xffffff);
  const std::uint64_t before = Payload::total_bytes();
  client.send_bytes(wire);
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(Payload::total_bytes(), before);
}

TEST(ConnectionTest, ScsiHasNoPlaceInADiscoverySession) {
  TestServer server;
  TestClient client(server);
  client.login_discovery();
  EXPECT_EQ(client.send(command_pdu({})).at(0).opcode(), Opcode::kReject);
  EXPECT_TRUE(client.connection.closing());
}

TEST(ConnectionTest, AReinstatedSessionKeepsItsNexus) {
  TestServer server;
  TestClient first(server);
  first.login();
  const auto nexus = server.device().nexus.lock();
  TestClient second(server);
  second.login();
  EXPECT_TRUE(first.connection.closing());
  EXPECT_FALSE(second.connection.closing());
  EXPECT_EQ(server.device().nexus.lock(), nexus);
  EXPECT_EQ(server.registry->size(), 1u);
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kReinstated);
}

TEST(ConnectionTest, AnotherIsidIsAnotherSession) {
  TestServer server;
  TestClient first(server);
  first.login({}, 1);
  TestClient second(server);
  second.login({}, 2);
  EXPECT_FALSE(first.connection.closing());
  EXPECT_EQ(server.registry->size(), 2u);
}

TEST(ConnectionTest, ADeviceMayAnswerAfterTheConnectionIsGone) {
  TestServer server;
  server.device().hold = true;
  {
    TestClient client(server);
    client.login();
    client.send(command_pdu({.expected_bytes = 512, .flags = kFinal | kRead, .cdb = read10(0, 1)}));
  }
  ASSERT_EQ(server.device().pending.size(), 1u);
  server.device().answer_oldest();
  EXPECT_EQ(server.observer.ended.size(), 1u);
}

TEST(ConnectionTest, DrainAsksForLogout) {
  TestServer server;
  TestClient client(server);
  client.login();
  server.registry->drain(5);
  const auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kAsyncMessage);
  EXPECT_EQ(pdus[0].u8(36), 1);
  EXPECT_EQ(pdus[0].u16(42), 5);
}

TEST(ConnectionTest, NothingIsReadWhileTheOutputIsFull) {
  Options options;
  options.output_pdus_max = 4;
  TestServer server(options);
  TestClient client(server);
  client.login();
  Bytes wire;
  for (int i = 0; i < 8; ++i) {
    const Bytes one = nop_out_pdu(1, kReservedTag).wire();
    wire.insert(wire.end(), one.begin(), one.end());
  }
  std::array<iovec, 2> places{};
  ASSERT_GE(client.connection.prepare(places), 1u);
  std::memcpy(places[0].iov_base, wire.data(), wire.size());
  client.connection.received(wire.size());
  EXPECT_FALSE(client.connection.wants_input());
  EXPECT_EQ(client.take().size(), 8u);
  EXPECT_TRUE(client.connection.wants_input());
}

// A conversation that uses every kind of PDU.
Bytes conversation() {
  Bytes wire;
  const auto add = [&](const InitiatorPdu& pdu, bool digests = true) {
    const Bytes bytes = pdu.wire(digests, digests);
    wire.insert(wire.end(), bytes.begin(), bytes.end());
  };
  add(login_pdu(
          keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk",
                "HeaderDigest=CRC32C", "DataDigest=CRC32C", "InitialR2T=No"}),
          kOperationalToFull),
      false);
  add(command_pdu({.itt = 1,
                   .cmd_sn = 1,
                   .expected_bytes = 512,
                   .flags = kFinal | kRead,
                   .cdb = read10(0, 1)}));
  add(command_pdu({.itt = 2,
                   .cmd_sn = 2,
                   .expected_bytes = 1024,
                   .flags = kWrite,
                   .cdb = write10(0, 2),
                   .data = pattern(301)}));
  const Bytes data = pattern(1024);
  add(data_out_pdu({.itt = 2, .offset = 301, .data = {data.begin() + 301, data.end()}}));
  add(nop_out_pdu(3, kReservedTag, pattern(13)));
  add(text_pdu(keys({"SendTargets="})));
  add(management_pdu({.function = TaskManagement::kLogicalUnitReset, .itt = 4, .cmd_sn = 3}));
  add(logout_pdu(LogoutReason::kCloseSession));
  return wire;
}

Bytes answers_to(const Bytes& wire, std::size_t first, std::size_t chunk) {
  TestServer server;
  TestClient client(server);
  client.chunk_bytes_max = chunk;
  client.feed(std::span(wire).first(first));
  client.feed(std::span(wire).subspan(first));
  return client.take_bytes();
}

TEST(ConnectionTest, TheStreamMayBeCutAnywhere) {
  const Bytes wire = conversation();
  const Bytes whole = answers_to(wire, wire.size(), SIZE_MAX);
  ASSERT_GT(whole.size(), 8 * kBhsBytes);
  for (std::size_t cut = 1; cut < wire.size(); ++cut) {
    ASSERT_EQ(answers_to(wire, cut, SIZE_MAX), whole) << "cut at " << cut;
  }
  for (const std::size_t chunk : {1u, 2u, 3u, 5u, 7u, 47u, 49u, 52u}) {
    ASSERT_EQ(answers_to(wire, 0, chunk), whole) << "chunks of " << chunk;
  }
}

TEST(ConnectionTest, ATruncatedStreamLeavesNothingBehind) {
  const Bytes wire = conversation();
  for (std::size_t end = 0; end < wire.size(); end += 17) {
    TestServer server;
    {
      TestClient client(server);
      client.chunk_bytes_max = 64;
      // What the server says has digests from some point on: as bytes.
      client.feed(std::span(wire).first(end));
      static_cast<void>(client.take_bytes());
    }
    EXPECT_EQ(server.registry->size(), 0u);
    EXPECT_EQ(server.observer.ended.size(), 1u) << "cut at " << end;
  }
}

}  // namespace
}  // namespace mariner::iscsi
