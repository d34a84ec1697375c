#include "server/scsi/sense.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::hex;

std::string fixed(const Sense& sense) { return hex(encode(sense, SenseFormat::kFixed)); }
std::string descriptor(const Sense& sense) { return hex(encode(sense, SenseFormat::kDescriptor)); }

TEST(Sense, FixedFormatHasEighteenBytes) {
  EXPECT_EQ(fixed(illegal_request(asc::kInvalidOpcode)),
            "70 00 05 00 00 00 00 0a 00 00 00 00 20 00 00 00 00 00");
}

TEST(Sense, FixedFormatPointsAtAFieldOfTheCdb) {
  EXPECT_EQ(fixed(invalid_field_in_cdb(2, 5)),
            "70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 cd 00 02");
}

TEST(Sense, FixedFormatPointsAtAWholeByteOfTheParameterList) {
  EXPECT_EQ(fixed(invalid_parameter(0x0102)),
            "70 00 05 00 00 00 00 0a 00 00 00 00 26 00 00 80 01 02");
}

TEST(Sense, FixedFormatCarriesAnInformationOf32Bits) {
  EXPECT_EQ(fixed({SenseKey::kMediumError, asc::kUnrecoveredReadError, 0xFFFFFFFF, {}}),
            "f0 00 03 ff ff ff ff 0a 00 00 00 00 11 00 00 00 00 00");
}

TEST(Sense, FixedFormatDropsAnInformationThatDoesNotFit) {
  EXPECT_EQ(fixed({SenseKey::kMediumError, asc::kUnrecoveredReadError, 0x100000000, {}}),
            "70 00 03 00 00 00 00 0a 00 00 00 00 11 00 00 00 00 00");
}

TEST(Sense, DescriptorFormatWithoutDescriptors) {
  EXPECT_EQ(descriptor({SenseKey::kNotReady, asc::kBecomingReady}), "72 02 04 01 00 00 00 00");
}

TEST(Sense, DescriptorFormatCarriesAnInformationOf64Bits) {
  EXPECT_EQ(descriptor({SenseKey::kMediumError, asc::kWriteError, 0x100000000, {}}),
            "72 03 0c 00 00 00 00 0c 00 0a 80 00 00 00 00 01 00 00 00 00");
}

TEST(Sense, DescriptorFormatPointsAtAField) {
  EXPECT_EQ(descriptor(invalid_field_in_cdb(1, 7)),
            "72 05 24 00 00 00 00 08 02 06 00 00 cf 00 01 00");
}

TEST(Sense, ProgressInBothFormats) {
  Sense sense{SenseKey::kNotReady, asc::kSelfTestInProgress};
  sense.progress = 0x1234;
  EXPECT_EQ(fixed(sense), "70 00 02 00 00 00 00 0a 00 00 00 00 04 09 00 80 12 34");
  EXPECT_EQ(descriptor(sense), "72 02 04 09 00 00 00 08 02 06 00 00 80 12 34 00");
}

}  // namespace
}  // namespace mariner::scsi
