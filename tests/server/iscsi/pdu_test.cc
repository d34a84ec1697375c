#include "server/iscsi/pdu.h"

#include <gtest/gtest.h>

#include <cctype>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

// 48 bytes from hexadecimal digits; spaces are for the eye.
Bhs golden(std::string_view hex) {
  Bhs bhs{};
  std::size_t digits = 0;
  for (const char c : hex) {
    if (c == ' ') continue;
    const unsigned nibble = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    bhs.at(digits / 2) |= static_cast<std::byte>(digits % 2 == 0 ? nibble << 4 : nibble);
    ++digits;
  }
  EXPECT_EQ(digits, 2 * kBhsBytes);
  return bhs;
}

TEST(PduTest, ScsiCommandIsParsed) {
  const Bhs bhs = golden(
      "01e10000 00001000 0001000000000000 a1a2a3a4 00002000 b1b2b3b4 c1c2c3c4"
      "2a000000 00080000 10000000 00000000");
  const auto common = parse_common(bhs);
  EXPECT_EQ(common.opcode, 0x01);
  EXPECT_EQ(common.data_bytes, 0x1000u);
  EXPECT_EQ(common.padding_bytes(), 0u);
  const auto pdu = parse_scsi_command(bhs);
  ASSERT_TRUE(pdu);
  EXPECT_TRUE(pdu->final && pdu->read && pdu->write && !pdu->immediate);
  EXPECT_EQ(pdu->lun, 0x0001000000000000u);
  EXPECT_EQ(pdu->itt, 0xa1a2a3a4u);
  EXPECT_EQ(pdu->expected_bytes, 0x2000u);
  EXPECT_EQ(pdu->cmd_sn, 0xb1b2b3b4u);
  EXPECT_EQ(pdu->exp_stat_sn, 0xc1c2c3c4u);
  EXPECT_EQ(pdu->cdb[0], 0x2a);
  EXPECT_EQ(pdu->cdb[8], 0x10);
}

TEST(PduTest, ScsiCommandRules) {
  EXPECT_TRUE(parse_scsi_command(command_pdu({}).bhs));
  EXPECT_FALSE(parse_scsi_command(command_pdu({.itt = kReservedTag}).bhs));
  EXPECT_FALSE(parse_scsi_command(command_pdu({.flags = kRead}).bhs)) << "F=0 without W";
  EXPECT_TRUE(parse_scsi_command(command_pdu({.flags = kWrite}).bhs));
  EXPECT_FALSE(parse_scsi_command(command_pdu({.flags = kFinal | 5}).bhs)) << "attribute 5";
}

TEST(PduTest, CommonHeaderCountsAhsInWordsAndPadsToFour) {
  Bhs bhs{};
  bhs[0] = std::byte{0xc0};
  bhs[4] = std::byte{3};
  bhs[7] = std::byte{5};
  const auto common = parse_common(bhs);
  EXPECT_TRUE(common.immediate);
  EXPECT_EQ(common.ahs_bytes, 12u);
  EXPECT_EQ(common.data_bytes, 5u);
  EXPECT_EQ(common.padding_bytes(), 3u);
}

TEST(PduTest, OtherRequestsKnowTheirRules) {
  EXPECT_FALSE(parse_data_out(data_out_pdu({.itt = kReservedTag}).bhs));
  EXPECT_FALSE(parse_task_management(management_pdu({.itt = kReservedTag}).bhs));
  EXPECT_TRUE(parse_text_request(text_pdu("").bhs));
  EXPECT_FALSE(parse_text_request(text_pdu("", kReservedTag, 0xc0).bhs)) << "F and C";
  EXPECT_TRUE(parse_nop_out(nop_out_pdu(kReservedTag, 5).bhs));
  InitiatorPdu nop = nop_out_pdu(kReservedTag, 5);
  nop.bhs[0] = std::byte{0};
  EXPECT_FALSE(parse_nop_out(nop.bhs)) << "not immediate";
  EXPECT_TRUE(parse_logout(logout_pdu(LogoutReason::kRemoveConnectionForRecovery).bhs));
  EXPECT_FALSE(parse_logout(logout_pdu(static_cast<LogoutReason>(3)).bhs));
}

TEST(PduTest, LoginRequestIsParsed) {
  const LoginRequest pdu = parse_login_request(
      golden("43870000 00000000 400001370000 0005 11111111 00070000 22222222 33333333"
             "00000000 00000000 00000000 00000000"));
  EXPECT_TRUE(pdu.transit);
  EXPECT_FALSE(pdu.continues);
  EXPECT_EQ(pdu.current_stage, 1);
  EXPECT_EQ(pdu.next_stage, 3);
  EXPECT_EQ(pdu.isid, (Isid{0x40, 0x00, 0x01, 0x37, 0x00, 0x00}));
  EXPECT_EQ(pdu.tsih, 5);
  EXPECT_EQ(pdu.cid, 7);
}

TEST(PduTest, TargetPdusMatchTheirGoldenBytes) {
  EXPECT_EQ(pack(ScsiResponse{.status = 2,
                              .residual = {.kind = Residual::Kind::kUnderflow, .count = 0x200},
                              .itt = 0xa1a2a3a4,
                              .exp_data_sn = 3}),
            golden("21820002 00000000 0000000000000000 a1a2a3a4 00000000 00000000 00000000"
                   "00000000 00000003 00000000 00000200"));
  EXPECT_EQ(pack(DataIn{.final = true,
                        .status = 0,
                        .residual = {.kind = Residual::Kind::kOverflow, .count = 1},
                        .itt = 1,
                        .data_sn = 2,
                        .offset = 0x2000}),
            golden("25850000 00000000 0000000000000000 00000001 ffffffff 00000000 00000000"
                   "00000000 00000002 00002000 00000001"));
  EXPECT_EQ(pack(R2t{.lun = 0x0001000000000000,
                     .itt = 1,
                     .ttt = 9,
                     .r2t_sn = 2,
                     .offset = 0x1000,
                     .desired_bytes = 0x40000}),
            golden("31800000 00000000 0001000000000000 00000001 00000009 00000000 00000000"
                   "00000000 00000002 00001000 00040000"));
  EXPECT_EQ(pack(LoginResponse{.transit = true,
                               .current_stage = 1,
                               .next_stage = 3,
                               .isid = {1, 2, 3, 4, 5, 6},
                               .tsih = 7,
                               .itt = 8,
                               .status = LoginStatus::kNotFound}),
            golden("23870000 00000000 010203040506 0007 00000008 00000000 00000000 00000000"
                   "00000000 02030000 00000000 00000000"));
  EXPECT_EQ(pack(AsyncMessage{.event = AsyncMessage::Event::kRequestLogout, .parameter3 = 10}),
            golden("32800000 00000000 0000000000000000 ffffffff 00000000 00000000 00000000"
                   "00000000 01000000 0000000a 00000000"));
  EXPECT_EQ(pack_reject(RejectReason::kInvalidPduField),
            golden("3f800900 00000000 0000000000000000 ffffffff 00000000 00000000 00000000"
                   "00000000 00000000 00000000 00000000"));
  EXPECT_EQ(pack(NopIn{.ttt = 4}),
            golden("20800000 00000000 0000000000000000 ffffffff 00000004 00000000 00000000"
                   "00000000 00000000 00000000 00000000"));
  EXPECT_EQ(pack(TextResponse{.final = false, .continues = true, .itt = 3, .ttt = 4}),
            golden("24400000 00000000 0000000000000000 00000003 00000004 00000000 00000000"
                   "00000000 00000000 00000000 00000000"));
  EXPECT_EQ(pack(TaskManagementResponse{.outcome = TaskManagementOutcome::kNotSupported, .itt = 3}),
            golden("22800500 00000000 0000000000000000 00000003 00000000 00000000 00000000"
                   "00000000 00000000 00000000 00000000"));
  EXPECT_EQ(pack(LogoutResponse{.outcome = LogoutResponse::Outcome::kNoSuchCid, .itt = 3}),
            golden("26800100 00000000 0000000000000000 00000003 00000000 00000000 00000000"
                   "00000000 00000000 00000000 00000000"));
}

TEST(PduTest, NumbersAreStampedAtTheirPlace) {
  Bhs bhs{};
  stamp_sequence(bhs, {.stat_sn = 1, .exp_cmd_sn = 2, .max_cmd_sn = 3});
  stamp_data_bytes(bhs, 0x010203);
  EXPECT_EQ(bhs, golden("00000000 00010203 0000000000000000 00000000 00000000 00000001 00000002"
                        "00000003 00000000 00000000 00000000"));
}

TEST(PduTest, OpcodesHaveNames) {
  EXPECT_EQ(opcode_name(0x01), "SCSI Command");
  EXPECT_EQ(opcode_name(0x1c), "opcode 0x1c");
}

}  // namespace
}  // namespace mariner::iscsi
