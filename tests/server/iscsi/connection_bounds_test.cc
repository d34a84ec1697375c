// What one connection can make us keep, and do, whatever it sends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "server/iscsi/connection.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

constexpr std::size_t kKiB = 1024;

InitiatorPdu read_pdu(std::uint32_t n, std::uint16_t blocks = 1) {
  return command_pdu({.itt = n,
                      .cmd_sn = n,
                      .expected_bytes = blocks * 512u,
                      .flags = kFinal | kRead,
                      .cdb = read10(0, blocks)});
}

// With a number of its own.
InitiatorPdu numbered_nop_pdu(std::uint32_t n, Bytes data) {
  InitiatorPdu pdu = nop_out_pdu(n, kReservedTag, std::move(data));
  pdu.bhs[0] = std::byte{0x00};
  store_be(&pdu.bhs[24], n);
  return pdu;
}

InitiatorPdu snack_pdu(std::uint32_t itt) {
  InitiatorPdu pdu = nop_out_pdu(itt, kReservedTag);
  pdu.bhs[0] = std::byte{0x10};
  return pdu;
}

void append(Bytes& wire, const Bytes& more) { wire.insert(wire.end(), more.begin(), more.end()); }

// Pieces of memory that wait to be sent: of one PDU at most a header, two slices and a trailer.
std::size_t pieces_to_send(TestClient& client) {
  std::vector<iovec> places(100'000);
  return client.connection.pending(places);
}

// Of payloads, since it was made.
class Held {
 public:
  [[nodiscard]] std::uint64_t bytes() const { return Payload::total_bytes() - before_; }

 private:
  const std::uint64_t before_ = Payload::total_bytes();
};

TEST(ConnectionBounds, AnEchoHoldsWhatIsEchoed) {
  TestServer server;
  TestClient client(server);
  client.login();
  const Held held;
  for (std::uint32_t i = 0; i < 16; ++i) {
    client.feed(nop_out_pdu(i, kReservedTag, pattern(256 * kKiB, i)).wire());
  }
  EXPECT_LE(held.bytes(), 16 * 8 * kKiB) << "the initiator's MaxRecvDataSegmentLength";
  const auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 16u);
  const Bytes sent = pattern(256 * kKiB, 15);
  EXPECT_EQ(pdus[15].data, Bytes(sent.begin(), sent.begin() + 8 * kKiB));
  EXPECT_EQ(held.bytes(), 0u);
}

TEST(ConnectionBounds, WhatIsKeptToBeSentAgainHoldsNoMore) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1"}));
  const Held held;
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(client.send(nop_out_pdu(i, kReservedTag, pattern(256 * kKiB))).size(), 1u);
  }
  EXPECT_LE(held.bytes(), 300 * 8 * kKiB);
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionBounds, WhoNeverAcknowledgesLongEchoesIsClosed) {
  Options options;
  options.payload_bytes_max = 1024 * kKiB;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1", "MaxRecvDataSegmentLength=262144"}));
  const Held held;
  std::uint32_t sent = 0;
  while (sent < 100 && !client.connection.closing()) {
    client.send(nop_out_pdu(sent++, kReservedTag, pattern(256 * kKiB)));
  }
  EXPECT_EQ(sent, 6u) << "five are more than 1 MiB";
  EXPECT_LE(held.bytes(), 1536 * kKiB);
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kProtocolError);
}

// As the data of unacknowledged reads does.
TEST(ConnectionBounds, CommandsWaitForTheMemoryOfEchoes) {
  Options options;
  options.payload_bytes_max = 64 * kKiB;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1", "MaxRecvDataSegmentLength=262144"}));
  const auto echo = client.send(nop_out_pdu(1, kReservedTag, pattern(60 * kKiB)));
  ASSERT_EQ(echo.size(), 1u);
  const auto pdus = client.send(read_pdu(1, 16));
  ASSERT_EQ(pdus.size(), 1u) << "8 KiB: they wait";
  EXPECT_EQ(pdus[0].opcode(), Opcode::kNopIn);
  EXPECT_EQ(pdus[0].itt(), kReservedTag) << "the initiator is asked what it has";
  InitiatorPdu answer = nop_out_pdu(kReservedTag, pdus[0].ttt());
  store_be(&answer.bhs[28], echo[0].stat_sn() + 1);
  EXPECT_EQ(client.send(answer).at(0).opcode(), Opcode::kDataIn);
}

TEST(ConnectionBounds, DataThatNobodyUsesTakesNoMemory) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1"}));
  const Held held;
  InitiatorPdu managed = management_pdu({.referenced_itt = 5});
  managed.data = pattern(256 * kKiB);
  InitiatorPdu snack = snack_pdu(9);
  snack.data = pattern(256 * kKiB);
  const InitiatorPdu pong = nop_out_pdu(kReservedTag, 1, pattern(256 * kKiB));
  for (const InitiatorPdu& pdu : {managed, snack, pong}) {
    const Bytes wire = pdu.wire();
    client.feed(std::span(wire).first(wire.size() - 1));
    EXPECT_LE(held.bytes(), 4 * kKiB) << "of what was rejected before";
    client.feed(std::span(wire).last(1));
  }
  EXPECT_EQ(client.take().size(), 2u);
  EXPECT_FALSE(client.connection.closing());
}

TEST(ConnectionBounds, ATextThatIsTooLongIsRefusedBeforeItComes) {
  TestServer server;
  TestClient client(server);
  client.login();
  const Held held;
  const Bytes wire = text_pdu(std::string(64 * kKiB + 1, 'x')).wire();
  client.feed(std::span(wire).first(kBhsBytes));
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).detail, "bytes of text: allowed 65536, found 65537");
}

class TwoConnections {
 public:
  explicit TwoConnections(Options options = {}) : server(std::move(options)) {
    first.login(keys({"MaxConnections=2"}));
    InitiatorPdu pdu = login_pdu(
        keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"}),
        kOperationalToFull, 1, server.registry->list().at(0).tsih);
    store_be(&pdu.bhs[20], std::uint16_t{1});
    EXPECT_EQ(second.send(pdu).at(0).u16(36), 0);
  }

  TestServer server;
  TestClient first{server};
  TestClient second{server};
};

TEST(ConnectionBounds, RequestsThatWaitForThoseBeforeThemHoldTheInitiatorsMemory) {
  Options options;
  options.initiator_payload_bytes_max = 64 * kKiB;
  TwoConnections two(options);
  two.server.device().hold = true;
  two.first.send(read_pdu(1, 128));  // all of it
  const Held held;
  for (std::uint32_t n = 3; n <= 6; ++n) {
    EXPECT_TRUE(two.second.send(numbered_nop_pdu(n, pattern(4 * kKiB, n))).empty());
  }
  EXPECT_EQ(held.bytes(), 16 * kKiB) << "a quarter more";
  const auto refused = two.second.send(numbered_nop_pdu(7, pattern(4 * kKiB)));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].opcode(), Opcode::kReject);
  EXPECT_EQ(refused[0].u8(2), 0x0a);
  EXPECT_TRUE(two.second.send(numbered_nop_pdu(8, {})).empty()) << "without data it may wait";
  EXPECT_EQ(held.bytes(), 16 * kKiB);

  two.first.send(numbered_nop_pdu(2, {}));
  const auto pdus = two.second.take();
  ASSERT_EQ(pdus.size(), 5u);
  EXPECT_EQ(pdus[3].data, pattern(4 * kKiB, 6));
  EXPECT_EQ(pdus[4].itt(), 8u);
  EXPECT_EQ(two.second.send(numbered_nop_pdu(9, {})).at(0).exp_cmd_sn(), 10u);
  EXPECT_EQ(held.bytes(), 0u);
}

TEST(ConnectionBounds, WhatWaitsGivesItsMemoryBackWithItsConnection) {
  Options options;
  options.initiator_payload_bytes_max = 64 * kKiB;
  TwoConnections two(options);
  two.server.device().hold = true;
  TestClient other(two.server);
  other.login({}, 2);
  other.send(read_pdu(1, 128));
  EXPECT_TRUE(two.second.send(numbered_nop_pdu(2, pattern(8 * kKiB))).empty());
  EXPECT_TRUE(two.second.send(numbered_nop_pdu(3, pattern(8 * kKiB))).empty());
  two.second.connection.end(EndReason::kPeerClosed, {});
  const Bytes write = command_pdu({.itt = 2,
                                   .cmd_sn = 2,
                                   .expected_bytes = 16 * kKiB,
                                   .flags = kFinal | kWrite,
                                   .cdb = write10(0, 32),
                                   .data = pattern(16 * kKiB)})
                          .wire();
  EXPECT_TRUE(other.send_bytes(write).empty()) << "no TASK SET FULL: there is room for it to wait";
}

TEST(ConnectionBounds, WhatIsDamagedWaitsForNothing) {
  Options options;
  options.initiator_payload_bytes_max = 64 * kKiB;
  TestServer server(options);
  server.device().hold = true;
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1", "DataDigest=CRC32C"}));
  client.send(read_pdu(1, 128));
  const Held held;
  for (int i = 0; i < 5; ++i) {
    Bytes wire = numbered_nop_pdu(3, pattern(8 * kKiB)).wire(false, true);
    wire.back() ^= std::byte{1};
    EXPECT_EQ(client.send_bytes(wire).at(0).u8(2), 0x02);
  }
  EXPECT_LE(held.bytes(), 5 * 4 * kKiB) << "what was said about them";
  EXPECT_TRUE(client.send(numbered_nop_pdu(3, pattern(8 * kKiB))).empty());
}

TEST(ConnectionBounds, AnEchoThatWaitedFollowsTheLimitOfNow) {
  TwoConnections two;
  EXPECT_TRUE(two.second.send(numbered_nop_pdu(2, pattern(8 * kKiB))).empty());
  two.second.send(text_pdu(keys({"MaxRecvDataSegmentLength=1024"})));
  two.first.send(numbered_nop_pdu(1, {}));
  const Held held;
  const auto pdus = two.second.take();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].data, pattern(kKiB));
}

// Every place of the window and for immediate commands is taken, but the number that a half
// received command has is still to be had.
TEST(ConnectionBounds, ANumberMayComeOnBothConnectionsWhenThereIsNoPlaceForMore) {
  Options options;
  options.command_window = 2;
  options.immediate_commands_max = 1;
  TwoConnections two(options);
  TestDevice& device = two.server.device();
  device.hold = true;
  two.first.send(read_pdu(1));
  two.first.send(command_pdu({.itt = 50, .cmd_sn = 2, .immediate = true}));
  const Bytes write = command_pdu({.itt = 2,
                                   .cmd_sn = 2,
                                   .expected_bytes = 512,
                                   .flags = kFinal | kWrite,
                                   .cdb = write10(0, 1),
                                   .data = pattern(512)})
                          .wire();
  two.second.feed(std::span(write).first(100));
  InitiatorPdu same = read_pdu(2);
  store_be(&same.bhs[16], std::uint32_t{3});
  EXPECT_TRUE(two.first.send(same).empty());
  EXPECT_EQ(device.executed, 3u);
  EXPECT_TRUE(two.second.send_bytes(std::span(write).subspan(100)).empty());
  EXPECT_EQ(device.executed, 3u) << "a duplicate now";
  while (!device.pending.empty()) device.answer_oldest();
  const auto pdus = two.first.take();
  ASSERT_EQ(pdus.size(), 3u);
  EXPECT_EQ(pdus[2].itt(), 3u);
  EXPECT_EQ(pdus[2].max_cmd_sn(), 4u);
  device.hold = false;
  EXPECT_EQ(two.second.send(read_pdu(3)).size(), 1u);
}

// A SNACK is 48 bytes, and what it asks for may be thousands of PDUs.
TEST(ConnectionBounds, WhatIsAskedForAgainWaitsUntilThereIsRoomForIt) {
  Options options;
  options.output_pdus_max = 64;
  TestServer server(options);
  TestClient client(server);
  client.login(keys({"ErrorRecoveryLevel=1", "MaxRecvDataSegmentLength=512"}));
  const auto read = client.send(read_pdu(1, 64));
  ASSERT_EQ(read.size(), 64u);
  Bytes wire;
  for (int i = 0; i < 100; ++i) append(wire, snack_pdu(1).wire());
  client.feed(wire);
  EXPECT_LE(pieces_to_send(client), 64u * 4);
  EXPECT_FALSE(client.connection.wants_input());
  const auto again = client.take();
  ASSERT_EQ(again.size(), 100u * 64u) << "all of it, little by little";
  EXPECT_TRUE(std::ranges::all_of(
      again, [](const TargetPdu& pdu) { return pdu.opcode() == Opcode::kDataIn; }));
  EXPECT_TRUE(client.connection.wants_input());
  EXPECT_FALSE(client.connection.closing());
}

// A command behind the bound is begun when there is room, not when it was received.
TEST(ConnectionBounds, RequestsBehindAFullOutputWait) {
  Options options;
  options.output_pdus_max = 2;
  TestServer server(options);
  TestClient client(server);
  client.login();
  Bytes wire;
  for (std::uint32_t n = 1; n <= 5; ++n) append(wire, read_pdu(n).wire());
  client.feed(wire);
  EXPECT_EQ(server.device().executed, 2u);
  client.connection.tick();
  const auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 5u);
  for (std::uint32_t n = 1; n <= 5; ++n) EXPECT_EQ(pdus[n - 1].itt(), n);
}

TEST(ConnectionBounds, WhatWasHeldBackIsForgottenWhenTheConnectionEnds) {
  Options options;
  options.output_pdus_max = 2;
  TestServer server(options);
  TestClient client(server);
  client.login();
  Bytes wire;
  for (std::uint32_t n = 1; n <= 5; ++n) append(wire, read_pdu(n).wire());
  client.feed(wire);
  client.connection.end(EndReason::kKicked, {});
  EXPECT_EQ(client.take().size(), 3u) << "two answers, and the last word";
  EXPECT_EQ(server.device().executed, 2u);
}

// --- Who may be anybody -------------------------------------------------------------------

TEST(DiscoveryBounds, ANopOutThatWantsAnAnswerIsRejectedBeforeItsDataComes) {
  TestServer server;
  TestClient client(server);
  client.login_discovery();
  const Held held;
  const Bytes wire = nop_out_pdu(7, kReservedTag, pattern(256 * kKiB)).wire();
  client.feed(std::span(wire).first(kBhsBytes));
  EXPECT_LE(held.bytes(), 4 * kKiB) << "the Reject";
  const auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
  EXPECT_EQ(pdus[0].u8(2), 0x05);
  EXPECT_TRUE(client.send_bytes(std::span(wire).subspan(kBhsBytes)).empty());
  EXPECT_EQ(held.bytes(), 0u);
  EXPECT_EQ(client.send(text_pdu(keys({"SendTargets=All"}))).at(0).opcode(), Opcode::kTextResponse);
}

TEST(DiscoveryBounds, ARejectedRequestHasHadItsNumber) {
  TestServer server;
  TestClient client(server);
  client.login_discovery();
  for (std::uint32_t n = 1; n <= 3; ++n) {
    const auto pdus = client.send(numbered_nop_pdu(n, {}));
    ASSERT_EQ(pdus.size(), 1u);
    EXPECT_EQ(pdus[0].opcode(), Opcode::kReject);
    EXPECT_EQ(pdus[0].exp_cmd_sn(), n + 1);
    EXPECT_EQ(pdus[0].max_cmd_sn(), n + 128);
  }
}

TEST(DiscoveryBounds, AnswersToOurPingsAreTaken) {
  TestServer server;
  TestClient client(server);
  client.login_discovery();
  server.executor.now += server.options.ping_interval + std::chrono::seconds(1);
  client.connection.tick();
  const auto ping = client.take();
  ASSERT_EQ(ping.size(), 1u);
  EXPECT_TRUE(client.send(nop_out_pdu(kReservedTag, ping[0].ttt())).empty());
  server.executor.now += server.options.ping_time_max - std::chrono::seconds(2);
  client.connection.tick();
  EXPECT_FALSE(client.connection.closing());
}

TEST(DiscoveryBounds, TaskManagementEndsTheConnection) {
  TestServer server;
  TestClient client(server);
  client.login_discovery();
  EXPECT_EQ(client.send(management_pdu({.referenced_itt = 5})).at(0).opcode(), Opcode::kReject);
  EXPECT_TRUE(client.connection.closing());
}

TEST(DiscoveryBounds, OneAnswerAtATimeIsKept) {
  TestServer server;
  for (int i = 0; i < 100; ++i) server.directory.names.push_back("iqn.x:" + std::to_string(i));
  TestClient client(server);
  client.login_discovery();
  Bytes wire;
  for (int i = 0; i < 100; ++i) append(wire, text_pdu(keys({"SendTargets=All"})).wire());
  const Held held;
  client.feed(wire);
  EXPECT_LE(held.bytes(), 8 * kKiB);
  EXPECT_FALSE(client.connection.wants_input());
  EXPECT_EQ(client.take().size(), 100u);
  EXPECT_FALSE(client.connection.closing());
}

TEST(LoginBounds, OneAnswerAtATimeIsKept) {
  TestServer server;
  TestClient client(server);
  Bytes wire =
      login_pdu(keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Discovery"}), 1 << 2)
          .wire();
  for (int i = 0; i < 50; ++i) {
    append(wire, login_pdu(keys({"X-" + std::to_string(i) + "=1"}), 1 << 2).wire());
  }
  const Held held;
  client.feed(wire);
  EXPECT_LE(held.bytes(), 8 * kKiB);
  const auto pdus = client.take();
  ASSERT_EQ(pdus.size(), 51u);
  EXPECT_EQ(text_of(pdus[50].data), keys({"X-49=NotUnderstood"}));
}

}  // namespace
}  // namespace mariner::iscsi
