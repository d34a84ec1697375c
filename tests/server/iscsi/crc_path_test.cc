// From the socket to the log: the CRC32C of each byte of a write is computed once, whether or not
// data digests are on, and what the log stores is right.
#include <gtest/gtest.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tests/logging/log_testing.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace {
std::size_t g_crc_bytes = 0;  // given to ISA-L
}  // namespace

// The linker puts this between crc32c() and the library (--wrap).
extern "C" {
unsigned int __real_crc32_iscsi(unsigned char* data, int bytes, unsigned int state);
unsigned int __wrap_crc32_iscsi(unsigned char* data, int bytes, unsigned int state) {
  g_crc_bytes += static_cast<std::size_t>(bytes);
  return __real_crc32_iscsi(data, bytes, state);
}
}

namespace mariner::iscsi {
namespace {

constexpr std::size_t kKiB = 1024;

class CrcPathTest : public testing::Test {
 protected:
  void log_in(bool digests, std::string_view more_keys = {}) {
    client.login(keys({"InitialR2T=No", "ImmediateData=Yes", "FirstBurstLength=262144"}) +
                 (digests ? keys({"DataDigest=CRC32C"}) : "") + std::string(more_keys));
    ASSERT_EQ(client.data_digest, digests);
    ASSERT_TRUE(rig.open());
  }

  // A write in segments of these lengths, and how many bytes of CRC it took to receive it and to
  // log it (without the log's headers). Fails when other data is read back, or its CRC is wrong.
  std::pair<std::size_t, std::size_t> write(const std::vector<std::size_t>& segments) {
    std::size_t total = 0;
    for (const std::size_t segment : segments) total += segment;
    const Bytes data = pattern(total, ++writes);
    const Bytes wire = wire_of(data, segments);
    g_crc_bytes = 0;
    client.feed(wire);
    const std::size_t received = std::exchange(g_crc_bytes, 0);
    client.take();
    return {received, log(data)};
  }

  // Logs what the device was given last, which is to be `data`, and reads it back. Returns how many
  // bytes of CRC that took.
  std::size_t log(const Bytes& data) {
    EXPECT_EQ(server.device().written.size(), writes);
    const Payload payload = server.device().written.back();
    const std::size_t total = data.size();
    const auto blocks = static_cast<std::uint32_t>(total / kBlockBytes);
    const logging::Record record = logging::test::record_of(1, writes, blocks);
    std::optional<Result<logging::LoggedAt>> at;
    g_crc_bytes = 0;
    rig.writer->append(record, logging::test::whole(payload), logging::Urgency::kOrdinary,
                       [&](Result<logging::LoggedAt> result) { at = std::move(result); });
    const std::size_t logged = g_crc_bytes;
    rig.executor.run_until_idle();
    Payload to = Payload::allocate(total);
    const auto read = logging::read_log_blocking(
        rig.disks, {(**at).location, record.volume, record.sequence, 0, to.bytes()});
    EXPECT_TRUE(read.has_value());
    EXPECT_TRUE(std::ranges::equal(to.bytes(), data));
    return logged;
  }

  // Immediate data, then unsolicited Data-Out PDUs.
  [[nodiscard]] Bytes wire_of(const Bytes& data, const std::vector<std::size_t>& segments) const {
    Bytes wire;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto from = data.begin() + static_cast<std::ptrdiff_t>(offset);
      const Bytes segment(from, from + static_cast<std::ptrdiff_t>(segments[i]));
      const bool final = i + 1 == segments.size();
      const InitiatorPdu pdu =
          i == 0 ? command_pdu({.itt = writes,
                                .cmd_sn = writes,
                                .expected_bytes = static_cast<std::uint32_t>(data.size()),
                                .flags = static_cast<std::uint8_t>(kWrite | (final ? kFinal : 0)),
                                .cdb = write10(0, static_cast<std::uint16_t>(data.size() / 512)),
                                .data = segment})
                 : data_out_pdu({.itt = writes,
                                 .data_sn = static_cast<std::uint32_t>(i - 1),
                                 .offset = static_cast<std::uint32_t>(offset),
                                 .final = final,
                                 .data = segment});
      const Bytes bytes = pdu.wire(false, client.data_digest);
      wire.insert(wire.end(), bytes.begin(), bytes.end());
      offset += segments[i];
    }
    return wire;
  }

  TestServer server;
  TestClient client{server};
  logging::test::LogRig rig;
  std::uint32_t writes = 0;
};

using Counted = std::pair<std::size_t, std::size_t>;

TEST_F(CrcPathTest, OnceWithDigests) {
  log_in(true);
  for (const std::size_t chunk : {std::size_t{100}, std::size_t{5000}, SIZE_MAX}) {
    client.chunk_bytes_max = chunk;
    EXPECT_EQ(write({4 * kKiB}), Counted(4 * kKiB, 0));
    EXPECT_EQ(write({256 * kKiB}), Counted(256 * kKiB, 0));
    EXPECT_EQ(write({64 * kKiB, 64 * kKiB, 128 * kKiB}), Counted(256 * kKiB, 0));
    EXPECT_EQ(write({8 * kKiB, 4 * kKiB, 52 * kKiB}), Counted(64 * kKiB, 0));
  }
}

TEST_F(CrcPathTest, OnceWithoutDigests) {
  log_in(false);
  EXPECT_EQ(write({4 * kKiB}), Counted(0, 4 * kKiB));
  EXPECT_EQ(write({64 * kKiB, 192 * kKiB}), Counted(0, 256 * kKiB));
}

TEST_F(CrcPathTest, BlocksOfSeveralSegmentsAreComputedForTheLog) {
  log_in(true);
  EXPECT_EQ(write({1 * kKiB, 3 * kKiB}), Counted(4 * kKiB, 4 * kKiB));
  EXPECT_EQ(write({10 * kKiB, 6 * kKiB}), Counted(16 * kKiB, 4 * kKiB)) << "the third of four";
  EXPECT_EQ(write({1000, 5000, 20000, 39536}), Counted(65536, 3 * 4 * kKiB));
}

// At error recovery level 1 it is asked for again, and comes in other pieces.
TEST_F(CrcPathTest, DamagedDataLeavesNoCrcForTheLog) {
  log_in(true, keys({"ErrorRecoveryLevel=1"}));
  const Bytes data = pattern(8 * kKiB, ++writes);
  const auto part = [&](std::uint32_t ttt, std::uint32_t data_sn, std::uint32_t from,
                        std::uint32_t to) {
    return data_out_pdu({.itt = 1,
                         .ttt = ttt,
                         .data_sn = data_sn,
                         .offset = from,
                         .final = to == data.size(),
                         .data = Bytes(data.begin() + from, data.begin() + to)});
  };
  const auto r2t = client.send(command_pdu({.itt = 1,
                                            .cmd_sn = 1,
                                            .expected_bytes = 8 * kKiB,
                                            .flags = kFinal | kWrite,
                                            .cdb = write10(0, 16)}));
  ASSERT_EQ(r2t.at(0).opcode(), Opcode::kR2t);
  Bytes damaged = part(r2t[0].ttt(), 0, 0, 8 * kKiB).wire(false, true);
  damaged[kBhsBytes + 100] ^= std::byte{1};
  const auto again = client.send_bytes(damaged);
  ASSERT_EQ(again.size(), 2u);
  ASSERT_EQ(again[1].opcode(), Opcode::kR2t);
  client.send(part(again[1].ttt(), 0, 0, 2 * kKiB));
  client.send(part(again[1].ttt(), 1, 2 * kKiB, 8 * kKiB));
  EXPECT_EQ(log(data), 4 * kKiB) << "the first of two blocks";
}

}  // namespace
}  // namespace mariner::iscsi
