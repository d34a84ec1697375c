#include "server/scsi/report_opcodes.h"

#include "proto/bytes.h"
#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using Option = ReportOpcodes::Option;

std::vector<std::uint8_t> data_of(const ReportOpcodes& command) {
  const auto result = report_opcodes(command, {.sanitize = true});
  EXPECT_TRUE(std::holds_alternative<std::vector<std::uint8_t>>(result));
  return std::get<std::vector<std::uint8_t>>(result);
}

std::string told(const ReportOpcodes& command) {
  const auto result = report_opcodes(command, {.sanitize = true});
  if (const auto* sense = std::get_if<Sense>(&result)) {
    return testing::outcome_of(check_condition(*sense, SenseFormat::kFixed)).verdict();
  }
  return testing::hex(std::get<std::vector<std::uint8_t>>(result));
}

TEST(ReportOpcodes, AllCommandsAreListed) {
  const auto data = data_of({.option = Option::kAll});
  ASSERT_EQ(data.size(), 4 + 8 * opcode_table().size());
  EXPECT_EQ(load_be<std::uint32_t>(&data[0]), data.size() - 4);
  for (std::size_t i = 0; i < opcode_table().size(); ++i) {
    const OpcodeInfo& info = opcode_table()[i];
    const std::uint8_t* p = &data[4 + 8 * i];
    EXPECT_EQ(p[0], info.opcode);
    EXPECT_EQ(load_be<std::uint16_t>(p + 2), info.service_action.value_or(0));
    EXPECT_EQ(p[5], info.service_action ? 0x01 : 0x00) << "SERVACTV, no CTDP";
    EXPECT_EQ(load_be<std::uint16_t>(p + 6), info.cdb_bytes);
  }
}

TEST(ReportOpcodes, LoadAndEjectAreKnownWhereTheMediumIsRemovable) {
  const auto usage = [](bool removable) {
    const auto result =
        report_opcodes({.option = Option::kOpcode, .opcode = 0x1B}, {.removable = removable});
    return testing::hex(std::get<std::vector<std::uint8_t>>(result));
  };
  EXPECT_EQ(usage(false), "00 03 00 06 1b 01 00 00 f5 00");
  EXPECT_EQ(usage(true), "00 03 00 06 1b 01 00 00 f7 00");
}

TEST(ReportOpcodes, EachOfAllCommandsMayCarryTimeouts) {
  const auto data = data_of({.option = Option::kAll, .timeouts = true});
  ASSERT_EQ(data.size(), 4 + 20 * opcode_table().size());
  EXPECT_EQ(testing::hex(std::span(data).subspan(4, 20)),
            "00 00 00 00 00 02 00 06 00 0a 00 00 00 00 00 01 00 00 00 0a");
}

TEST(ReportOpcodes, OneCommandWithItsUsageData) {
  EXPECT_EQ(told({.option = Option::kOpcode, .opcode = 0x28}),
            "00 03 00 0a 28 1a ff ff ff ff 1f ff ff 00");
}
TEST(ReportOpcodes, OneCommandWithTimeouts) {
  EXPECT_EQ(told({.option = Option::kOpcode, .timeouts = true, .opcode = 0x00}),
            "00 83 00 06 00 00 00 00 00 00 00 0a 00 00 00 00 00 01 00 00 00 0a");
}
// Nominal and recommended timeout of a command, in seconds.
std::string times(std::uint8_t opcode) {
  const auto data = data_of({.option = Option::kOpcode, .timeouts = true, .opcode = opcode});
  const std::uint8_t* p = &data[data.size() - 8];
  return std::to_string(load_be<std::uint32_t>(p)) + " " +
         std::to_string(load_be<std::uint32_t>(p + 4));
}
TEST(ReportOpcodes, TimeoutsDifferByWhatIsDone) {
  EXPECT_EQ(times(0x12), "1 10");
  EXPECT_EQ(times(0x28), "2 30");
  EXPECT_EQ(times(0x1D), "30 120") << "a self-test in the foreground";
}
TEST(ReportOpcodes, NobodyIsToldToGiveUpWhileAllIsWell) {
  for (const OpcodeInfo& info : opcode_table()) {
    const Option option = info.service_action ? Option::kServiceAction : Option::kOpcode;
    const auto data = data_of({.option = option,
                               .timeouts = true,
                               .opcode = info.opcode,
                               .service_action = info.service_action.value_or(0)});
    const std::uint8_t* p = &data[data.size() - 8];
    EXPECT_GT(load_be<std::uint32_t>(p), 0u) << info.name;
    EXPECT_LT(load_be<std::uint32_t>(p), load_be<std::uint32_t>(p + 4)) << info.name;
  }
}
TEST(ReportOpcodes, OneCommandWithAServiceAction) {
  EXPECT_EQ(told({.option = Option::kServiceAction, .opcode = 0x9E, .service_action = 0x10}),
            "00 03 00 10 9e 10 00 00 00 00 00 00 00 00 ff ff ff ff 00 00");
}
TEST(ReportOpcodes, AnUnsupportedCommandIsSaidToBe) {
  EXPECT_EQ(told({.option = Option::kOpcode, .opcode = 0x56}), "00 01 00 00");
  EXPECT_EQ(told({.option = Option::kServiceAction, .opcode = 0x57}), "00 01 00 00");
  EXPECT_EQ(told({.option = Option::kServiceAction, .opcode = 0x9E, .service_action = 0x1F}),
            "00 01 00 00");
  EXPECT_EQ(told({.option = Option::kEither, .opcode = 0x56}), "00 01 00 00");
}
TEST(ReportOpcodes, AnUnsupportedCommandHasNoTimeouts) {
  EXPECT_EQ(told({.option = Option::kOpcode, .timeouts = true, .opcode = 0x56}), "00 01 00 00");
}
TEST(ReportOpcodes, ByOpcodeAloneIsWrongForOneWithServiceActions) {
  EXPECT_EQ(told({.option = Option::kOpcode, .opcode = 0x9E}), "5/24/00@2.2");
}
TEST(ReportOpcodes, ByServiceActionIsWrongForOneWithout) {
  EXPECT_EQ(told({.option = Option::kServiceAction, .opcode = 0x28}), "5/24/00@2.2");
}
TEST(ReportOpcodes, EitherTakesBoth) {
  EXPECT_EQ(told({.option = Option::kEither, .opcode = 0x00}), "00 03 00 06 00 00 00 00 00 00");
  EXPECT_EQ(told({.option = Option::kEither, .opcode = 0x00, .service_action = 1}), "00 01 00 00");
  EXPECT_EQ(told({.option = Option::kEither, .opcode = 0xA3, .service_action = 0x0D}),
            "00 03 00 0c a3 0d 80 00 00 00 ff ff ff ff 00 00");
}
TEST(ReportOpcodes, AServiceActionIsNotCutToTheFiveBitsOfACdb) {
  EXPECT_EQ(told({.option = Option::kServiceAction, .opcode = 0x9E, .service_action = 0x0110}),
            "00 01 00 00");
}

TEST(ReportTaskManagement, ShortForm) {
  EXPECT_EQ(testing::hex(report_task_management({})), "da 00 00 00");
}
TEST(ReportTaskManagement, ExtendedForm) {
  EXPECT_EQ(testing::hex(report_task_management({.extended = true})),
            "da 00 00 0c 01 00 d8 00 00 00 01 2c 00 00 00 64");
}

}  // namespace
}  // namespace mariner::scsi
