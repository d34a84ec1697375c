#include "server/iscsi/completion.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

using Direction = scsi::Transfer::Direction;
using Kind = Residual::Kind;

struct ResidualCase {
  bool read, write;
  std::uint32_t expected;
  Direction direction;
  std::uint64_t asked;
  std::uint64_t data_in;
  Kind kind;
  std::uint32_t count;
};

// One line a rule.
TEST(CompletionTest, Residuals) {
  const ResidualCase cases[] = {
      {true, false, 512, Direction::kToInitiator, 512, 512, Kind::kNone, 0},
      {true, false, 1024, Direction::kToInitiator, 512, 512, Kind::kUnderflow, 512},
      {true, false, 200, Direction::kToInitiator, 512, 512, Kind::kOverflow, 312},
      {true, false, 0, Direction::kToInitiator, 512, 512, Kind::kOverflow, 512},
      // The device returned less than the CDB allowed (allocation length, CHECK CONDITION).
      {true, false, 255, Direction::kToInitiator, 255, 36, Kind::kUnderflow, 219},
      {true, false, 512, Direction::kToInitiator, 512, 0, Kind::kUnderflow, 512},
      {false, true, 512, Direction::kToTarget, 512, 0, Kind::kNone, 0},
      {false, true, 1024, Direction::kToTarget, 512, 0, Kind::kUnderflow, 512},
      {false, true, 256, Direction::kToTarget, 512, 0, Kind::kOverflow, 256},
      {false, true, 0, Direction::kToTarget, 512, 0, Kind::kOverflow, 512},
      {false, false, 0, Direction::kNone, 0, 0, Kind::kNone, 0},
      {true, false, 512, Direction::kNone, 0, 0, Kind::kUnderflow, 512},
      // The initiator's direction is not the CDB's.
      {false, true, 512, Direction::kToInitiator, 512, 512, Kind::kUnderflow, 512},
      {true, false, 512, Direction::kToTarget, 512, 0, Kind::kUnderflow, 512},
      // More than the count can say.
      {false, true, 0, Direction::kToTarget, 0x200000000, 0, Kind::kOverflow, 0xffffffff},
  };
  for (const ResidualCase& c : cases) {
    const Residual residual = residual_of({.read = c.read,
                                           .write = c.write,
                                           .expected_bytes = c.expected,
                                           .asked = {c.direction, c.asked}},
                                          c.data_in);
    const auto line = static_cast<std::size_t>(&c - cases);
    EXPECT_EQ(static_cast<int>(residual.kind), static_cast<int>(c.kind)) << "case " << line;
    EXPECT_EQ(residual.count, c.count) << "case " << line;
  }
}

// What the CDB leaves open is as the initiator has it, up to the bound.
TEST(ResidualOf, OpenTransfers) {
  const auto residual = [](std::uint32_t expected) {
    return residual_of({.write = true,
                        .expected_bytes = expected,
                        .asked = {scsi::Transfer::Direction::kToTarget, 520, true}},
                       0);
  };
  EXPECT_EQ(residual(4).kind, Residual::Kind::kNone);
  EXPECT_EQ(residual(520).kind, Residual::Kind::kNone);
  EXPECT_EQ(residual(521).kind, Residual::Kind::kUnderflow);
  EXPECT_EQ(residual(521).count, 1u);
}

class SendCompletionTest : public testing::Test {
 protected:
  std::vector<TargetPdu> complete(std::uint32_t expected, std::uint32_t returned,
                                  std::vector<std::uint8_t> sense = {}) {
    scsi::Response response;
    if (returned > 0) {
      // In uneven slices: their borders are not those of PDUs.
      const Payload data = Payload::copy_of(pattern(returned));
      for (std::size_t at = 0; at < returned;) {
        const std::size_t n = std::min<std::size_t>(700, returned - at);
        response.data_in.push_back({.payload = data, .offset = at, .length = n});
        at += n;
      }
    }
    response.sense = std::move(sense);
    if (!response.sense.empty()) response.status = scsi::Status::kCheckCondition;
    send_completion({.itt = 5,
                     .read = true,
                     .expected_bytes = expected,
                     .asked = {Direction::kToInitiator, returned}},
                    response, parameters, sender);
    Bytes stream;
    std::array<iovec, 64> places{};
    while (!sender.empty()) {
      const std::size_t count = sender.pending(places);
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto* const from = static_cast<const std::byte*>(places[i].iov_base);
        stream.insert(stream.end(), from, from + places[i].iov_len);
        bytes += places[i].iov_len;
      }
      sender.sent(bytes);
    }
    return parse_target_stream(stream, false, false);
  }

  SessionParameters parameters;
  CommandWindow window{1, 8};
  PduSender sender{window};
};

TEST_F(SendCompletionTest, DataIsCutAtSegmentsAndBursts) {
  parameters.send_segment_bytes_max = 1024;
  parameters.burst_bytes_max = 1536;
  const auto pdus = complete(4000, 4000);
  const std::pair<std::uint32_t, bool> expected[] = {
      {1024, false}, {512, true}, {1024, false}, {512, true}, {928, true}};
  ASSERT_EQ(pdus.size(), std::size(expected));
  Bytes all;
  for (std::size_t i = 0; i < pdus.size(); ++i) {
    EXPECT_EQ(pdus[i].data.size(), expected[i].first);
    EXPECT_EQ((pdus[i].u8(1) & 0x80) != 0, expected[i].second) << "F of PDU " << i;
    EXPECT_EQ(pdus[i].u32(36), i) << "DataSN";
    EXPECT_EQ(pdus[i].u32(40), all.size()) << "offset";
    EXPECT_EQ((pdus[i].u8(1) & 0x01) != 0, i + 1 == pdus.size()) << "S of PDU " << i;
    all.insert(all.end(), pdus[i].data.begin(), pdus[i].data.end());
  }
  EXPECT_EQ(all, pattern(4000));
}

TEST_F(SendCompletionTest, NoMoreIsSentThanIsExpected) {
  const auto pdus = complete(200, 512);
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].data.size(), 200u);
  EXPECT_EQ(pdus[0].u8(1), 0x85);  // F, O, S
  EXPECT_EQ(pdus[0].u32(44), 312u);
}

TEST_F(SendCompletionTest, NoDataMakesAScsiResponse) {
  const auto pdus = complete(512, 0);
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(pdus[0].u8(1), 0x82);  // U
  EXPECT_EQ(pdus[0].u32(44), 512u);
}

TEST_F(SendCompletionTest, SenseFollowsDataInAResponseOfItsOwn) {
  const auto pdus = complete(512, 512, {0x70, 0, 3});
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_EQ(pdus[0].u8(1), 0x80) << "F without S";
  EXPECT_EQ(pdus[1].opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(pdus[1].u8(3), 0x02);
  EXPECT_EQ(pdus[1].u32(36), 1u) << "ExpDataSN";
  EXPECT_EQ(pdus[1].data,
            (Bytes{std::byte{0}, std::byte{3}, std::byte{0x70}, std::byte{0}, std::byte{3}}));
}

TEST_F(SendCompletionTest, OnlyTheLastPduTakesAStatSn) {
  parameters.send_segment_bytes_max = 512;
  const auto first = complete(1024, 1024);
  const auto second = complete(512, 512);
  EXPECT_EQ(first[1].stat_sn() + 1, second[0].stat_sn());
}

TEST(CompletionTest, OwnSenseIsFixedFormat) {
  const auto response = check_condition(kInvalidFieldInCdb);
  EXPECT_EQ(response.status, scsi::Status::kCheckCondition);
  ASSERT_EQ(response.sense.size(), 18u);
  EXPECT_EQ(response.sense[0], 0x70);
  EXPECT_EQ(response.sense[2], 0x05);
  EXPECT_EQ(response.sense[7], 10);
  EXPECT_EQ(response.sense[12], 0x24);
}

}  // namespace
}  // namespace mariner::iscsi
