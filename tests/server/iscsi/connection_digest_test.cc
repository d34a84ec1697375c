// A connection with digests: what they protect, and what becomes of it when they are wrong.
#include <gtest/gtest.h>

#include "server/iscsi/connection.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

TEST(ConnectionDigest, DigestsProtectBothDirections) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"HeaderDigest=CRC32C,None", "DataDigest=CRC32C,None"}));
  ASSERT_TRUE(client.header_digest && client.data_digest);
  const auto pdus = client.send(command_pdu({.expected_bytes = 512,
                                             .flags = kFinal | kWrite,
                                             .cdb = write10(0, 1),
                                             .data = pattern(512)}));
  EXPECT_EQ(pdus.at(0).opcode(), Opcode::kScsiResponse);
  const auto read = client.send(command_pdu(
      {.cmd_sn = 2, .expected_bytes = 1024, .flags = kFinal | kRead, .cdb = read10(0, 2)}));
  EXPECT_EQ(read.at(0).data, pattern(1024));
}

TEST(ConnectionDigest, AWrongHeaderDigestEndsTheConnectionWithoutAWord) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"HeaderDigest=CRC32C"}));
  Bytes wire = command_pdu({}).wire(true, false);
  wire[20] ^= std::byte{1};
  EXPECT_TRUE(client.send_bytes(wire).empty());
  EXPECT_TRUE(client.connection.closing());
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kHeaderDigestError);
  EXPECT_EQ(server.registry->counters().header_digest_errors, 1u);
}

TEST(ConnectionDigest, AWrongDataDigestIsRejectedAndEndsTheConnection) {
  TestServer server;
  TestClient client(server);
  client.login(keys({"DataDigest=CRC32C"}));
  Bytes wire = command_pdu({.expected_bytes = 512,
                            .flags = kFinal | kWrite,
                            .cdb = write10(0, 1),
                            .data = pattern(512)})
                   .wire(false, true);
  wire[kBhsBytes + 3] ^= std::byte{1};
  const auto pdus = client.send_bytes(wire);
  EXPECT_EQ(pdus.at(0).opcode(), Opcode::kReject);
  EXPECT_EQ(pdus.at(0).u8(2), 0x02);
  EXPECT_EQ(server.device().executed, 0u);
  EXPECT_EQ(server.observer.ended.at(0).reason, EndReason::kDataDigestError);
}

}  // namespace
}  // namespace mariner::iscsi
