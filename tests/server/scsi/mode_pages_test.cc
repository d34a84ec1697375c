#include "server/scsi/mode_pages.h"

#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

std::size_t index_of(std::uint8_t code, std::uint8_t subpage = 0) {
  for (std::size_t i = 0; i < mode_pages().size(); ++i) {
    if (mode_pages()[i].code == code && mode_pages()[i].subpage == subpage) return i;
  }
  ADD_FAILURE() << "no page " << int{code};
  return 0;
}

std::string defaults(std::uint8_t code, std::uint8_t subpage = 0) {
  return testing::hex(ModeParameters().page(index_of(code, subpage)));
}

std::string taken(ModeParameters& parameters, std::string_view page_hex) {
  const auto page = testing::bytes(page_hex);
  const auto wrong = parameters.take(index_of(page[0]), page, 100);
  return wrong ? testing::outcome_of(check_condition(*wrong, SenseFormat::kFixed)).verdict()
               : "taken";
}

TEST(ModePages, ReadWriteErrorRecovery) {
  EXPECT_EQ(defaults(0x01), "01 0a 80 00 00 00 00 00 00 00 00 00") << "AWRE";
}
TEST(ModePages, DisconnectReconnect) {
  EXPECT_EQ(defaults(0x02), "02 0e 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}
TEST(ModePages, VerifyErrorRecovery) {
  EXPECT_EQ(defaults(0x07), "07 0a 00 00 00 00 00 00 00 00 00 00");
}
TEST(ModePages, CachingWithoutWriteCache) {
  EXPECT_EQ(defaults(0x08), "08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}
TEST(ModePages, Control) {
  EXPECT_EQ(defaults(0x0A), "0a 0a 02 10 00 00 00 00 ff ff 00 1e")
      << "GLTSD, unrestricted reordering, unlimited busy timeout, 30 s for a self-test";
}
TEST(ModePages, PowerConditionWithoutTimers) {
  EXPECT_EQ(defaults(0x1A).substr(0, 11), "1a 26 00 00");
  EXPECT_EQ(ModeParameters().page(index_of(0x1A)).size(), 40u);
}
TEST(ModePages, InformationalExceptionsAreToldOnRequest) {
  EXPECT_EQ(defaults(0x1C), "1c 0a 00 06 00 00 00 00 00 00 00 01");
}
TEST(ModePages, ProvisioningThresholdsAreNone) {
  EXPECT_EQ(defaults(0x1C, 2), "5c 02 00 0c 00 00 00 00 00 00 00 00 00 00 00 00");
}

TEST(ModePages, HeadersSayWhatThePageIs) {
  for (const ModePage& page : mode_pages()) {
    EXPECT_EQ(page.defaults[0] & 0x3F, page.code);
    EXPECT_EQ((page.defaults[0] & 0x40) != 0, page.subpage != 0);
    EXPECT_EQ(page.defaults[page.header_bytes() - 1], page.bytes - page.header_bytes());
    for (std::size_t i = 0; i < page.header_bytes(); ++i) {
      EXPECT_EQ(page.changeable[i], page.defaults[i]) << "MODE SENSE returns it so";
    }
  }
}
TEST(ModePages, AllOfThemFitIntoASixByteAnswer) {
  std::size_t bytes = 4 + 8;
  for (const ModePage& page : mode_pages()) bytes += page.bytes;
  EXPECT_LE(bytes, 255u);
}

TEST(ModeParameters, BitsOfTheControlPage) {
  ModeParameters parameters;
  EXPECT_FALSE(parameters.descriptor_sense());
  EXPECT_FALSE(parameters.software_write_protect());
  EXPECT_EQ(taken(parameters, "0a 0a 06 10 00 00 00 00 ff ff 00 1e"), "taken");
  EXPECT_TRUE(parameters.descriptor_sense());
  EXPECT_EQ(taken(parameters, "0a 0a 02 10 08 00 00 00 ff ff 00 1e"), "taken");
  EXPECT_FALSE(parameters.descriptor_sense());
  EXPECT_TRUE(parameters.software_write_protect());
  EXPECT_NE(parameters, ModeParameters());
}
TEST(ModeParameters, BitsOfTheExceptionsPage) {
  ModeParameters parameters;
  EXPECT_EQ(parameters.exception_method(), ExceptionMethod::kRequest);
  EXPECT_EQ(taken(parameters, "1c 0a 04 02 00 00 00 00 00 00 00 01"), "taken");
  EXPECT_TRUE(parameters.exception_test());
  EXPECT_EQ(parameters.exception_method(), ExceptionMethod::kAttention);
  EXPECT_EQ(taken(parameters, "1c 0a 0a 00 00 00 00 00 00 00 00 01"), "taken");
  EXPECT_FALSE(parameters.exception_test());
  EXPECT_TRUE(parameters.exceptions_disabled());
  EXPECT_TRUE(parameters.background_errors());
}
TEST(ModeParameters, ATestOfWhatIsDisabledIsRefused) {
  ModeParameters parameters;
  EXPECT_EQ(taken(parameters, "1c 0a 0c 06 00 00 00 00 00 00 00 01"), "5/26/00@p102.3");
  EXPECT_EQ(parameters, ModeParameters());
}
TEST(ModeParameters, OtherMethodsOfReportingAreRefused) {
  ModeParameters parameters;
  for (const auto* page :
       {"1c 0a 00 01 00 00 00 00 00 00 00 01", "1c 0a 00 03 00 00 00 00 00 00 00 01",
        "1c 0a 00 04 00 00 00 00 00 00 00 01", "1c 0a 00 05 00 00 00 00 00 00 00 01",
        "1c 0a 00 0f 00 00 00 00 00 00 00 01"}) {
    EXPECT_EQ(taken(parameters, page), "5/26/00@p103.3") << page;
  }
}

}  // namespace
}  // namespace mariner::scsi
