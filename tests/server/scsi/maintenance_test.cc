#include "server/scsi/maintenance.h"

#include "server/scsi/cdb.h"
#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

Maintenance decoded(std::string_view hex) {
  const auto cdb = testing::cdb(hex);
  const OpcodeInfo* info = find_opcode(cdb);
  CHECK(info != nullptr);
  return decode_maintenance(cdb, info->operation);
}
template <typename T>
T as(std::string_view hex) {
  const Maintenance result = decoded(hex);
  EXPECT_TRUE(std::holds_alternative<T>(result)) << hex;
  return std::holds_alternative<T>(result) ? std::get<T>(result) : T{};
}
std::string refused(std::string_view hex) {
  return testing::outcome_of(check_condition(as<Sense>(hex), SenseFormat::kFixed)).verdict();
}

TEST(DecodeLogSense, Fields) {
  const auto command = as<LogSense>("4d 00 d9 ff 00 12 34 ab cd");
  EXPECT_EQ(command.control, LogSense::Control::kDefaultCumulative);
  EXPECT_EQ(command.page, 0x19);
  EXPECT_EQ(command.subpage, 0xFF);
  EXPECT_EQ(command.parameter_pointer, 0x1234);
  EXPECT_EQ(command.allocation_bytes, 0xABCDu);
}
TEST(DecodeLogSense, SavingAndPpcAreRefused) {
  const auto verdict = [](std::string_view cdb) { return testing::Rig().send(cdb).verdict(); };
  EXPECT_EQ(verdict("4d 01 40 00 00 00 00 00 ff"), "5/24/00@1.0");
  EXPECT_EQ(verdict("4d 02 40 00 00 00 00 00 ff"), "5/24/00@1.1");
  EXPECT_EQ(verdict("4c 03 40 00 00 00 00 00 00"), "5/24/00@1.0");
}
TEST(DecodeLogSelect, Fields) {
  const auto command = as<LogSelect>("4c 02 c2 00");
  EXPECT_TRUE(command.reset);
  EXPECT_EQ(command.control, LogSense::Control::kDefaultCumulative);
  EXPECT_EQ(command.page, 0x02);
}
TEST(DecodeLogSelect, CountersCannotBeSetByAList) {
  EXPECT_EQ(refused("4c 00 40 00 00 00 00 00 04"), "5/24/00@7");
}

TEST(DecodeSendDiagnostic, Tests) {
  EXPECT_EQ(as<SendDiagnostic>("1d 04").test, SelfTest::Kind::kDefault);
  EXPECT_EQ(as<SendDiagnostic>("1d 20").test, SelfTest::Kind::kBackgroundShort);
  EXPECT_EQ(as<SendDiagnostic>("1d 40").test, SelfTest::Kind::kBackgroundExtended);
  EXPECT_EQ(as<SendDiagnostic>("1d a0").test, SelfTest::Kind::kForegroundShort);
  EXPECT_EQ(as<SendDiagnostic>("1d c0").test, SelfTest::Kind::kForegroundExtended);
  EXPECT_EQ(as<SendDiagnostic>("1d 07").test, SelfTest::Kind::kDefault) << "UNITOFFL, DEVOFFL";
}
TEST(DecodeSendDiagnostic, AbortAndNothing) {
  EXPECT_TRUE(as<SendDiagnostic>("1d 80").abort);
  EXPECT_FALSE(as<SendDiagnostic>("1d 80").test.has_value());
  EXPECT_FALSE(as<SendDiagnostic>("1d 00").abort);
  EXPECT_FALSE(as<SendDiagnostic>("1d 10").test.has_value());
}
TEST(DecodeSendDiagnostic, ReservedCodesAndTwoTestsAtOnce) {
  EXPECT_EQ(refused("1d 60"), "5/24/00@1.7");
  EXPECT_EQ(refused("1d e0"), "5/24/00@1.7");
  EXPECT_EQ(refused("1d 24"), "5/24/00@1.7");
}
TEST(DecodeSendDiagnostic, ATestHasNoParameters) {
  EXPECT_EQ(refused("1d 04 00 00 04"), "5/24/00@3");
  EXPECT_EQ(refused("1d 80 00 01 00"), "5/24/00@3");
}
TEST(DecodeSendDiagnostic, ParametersAreAPage) {
  EXPECT_EQ(as<SendDiagnostic>("1d 10 00 00 04").parameter_bytes, 4u);
  EXPECT_EQ(refused("1d 00 00 00 04"), "5/24/00@1.4");
}

TEST(DecodeReceiveDiagnostic, HasOnePage) {
  EXPECT_EQ(as<ReceiveDiagnostic>("1c 01 00 01 00").allocation_bytes, 256u);
  EXPECT_EQ(as<ReceiveDiagnostic>("1c 00 40 01 00").allocation_bytes, 256u) << "not valid";
  EXPECT_EQ(refused("1c 01 40 01 00"), "5/24/00@2");
}

TEST(DecodeReadBuffer, Modes) {
  EXPECT_EQ(as<ReadBuffer>("3c 0a 00 00 00 00 01 02 03").mode, ReadBuffer::Mode::kEcho);
  EXPECT_EQ(as<ReadBuffer>("3c 0a 00 00 00 00 01 02 03").allocation_bytes, 0x010203u);
  EXPECT_EQ(as<ReadBuffer>("3c 0b").mode, ReadBuffer::Mode::kEchoDescriptor);
  for (const auto* cdb : {"3c 00", "3c 01", "3c 02", "3c 03", "3c 0c", "3c 1c", "3c 1f"}) {
    EXPECT_EQ(refused(cdb), "5/24/00@1.4") << cdb;
  }
}
TEST(DecodeWriteBuffer, OnlyTheEchoBufferAndNoMoreThanItHolds) {
  EXPECT_EQ(as<WriteBuffer>("3b 0a 00 00 00 00 00 10 00").parameter_bytes, kEchoBytesMax);
  EXPECT_EQ(refused("3b 0a 00 00 00 00 00 10 01"), "5/24/00@6");
  for (const auto* cdb : {"3b 00", "3b 02", "3b 05", "3b 0d", "3b 0e", "3b 0f"}) {
    EXPECT_EQ(refused(cdb), "5/24/00@1.4") << cdb << ": no microcode";
  }
}

TEST(MaintenanceTransfer, FollowsTheCdb) {
  testing::Rig rig;
  EXPECT_EQ(rig.transfer_of("4d 00 40 00 00 00 00 ab cd").bytes, 0xABCDu);
  EXPECT_EQ(rig.transfer_of("1d 10 00 00 04").direction, Transfer::Direction::kToTarget);
  EXPECT_EQ(rig.transfer_of("1c 01 00 00 08").bytes, 8u);
  EXPECT_EQ(rig.transfer_of("3b 0a 00 00 00 00 00 10 00").bytes, 4096u);
  EXPECT_EQ(rig.transfer_of("3b 0a 00 00 00 00 00 10 01").bytes, 0u);
  EXPECT_EQ(rig.transfer_of("4c 02 40 00 00 00 00 00 00").bytes, 0u);
}

}  // namespace
}  // namespace mariner::scsi
