#include "server/scsi/unmap.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

constexpr Geometry kGeometry{.block_bytes = 512, .block_count = 100, .transfer_blocks_max = 100};

// The extents as "lba+blocks ...", or the verdict on the list.
std::string parsed(std::string_view list_hex, std::optional<std::uint32_t> parameter_bytes = {}) {
  const auto list = testing::bytes(list_hex);
  const Unmap command{parameter_bytes.value_or(static_cast<std::uint32_t>(list.size()))};
  const auto result = parse_unmap(command, std::as_bytes(std::span(list)), kGeometry);
  if (const auto* sense = std::get_if<Sense>(&result)) {
    return testing::outcome_of(check_condition(*sense, SenseFormat::kFixed)).verdict();
  }
  std::string text;
  for (const Extent& extent : std::get<std::vector<Extent>>(result)) {
    text += std::to_string(extent.lba) + "+" + std::to_string(extent.blocks) + " ";
  }
  return text;
}

constexpr auto kHeader1 = "0016 0010 00000000";
const std::string kOne = "0000000000000008 00000010 00000000";

TEST(ParseUnmap, NoListIsNoError) { EXPECT_EQ(parsed(""), ""); }
TEST(ParseUnmap, OneDescriptor) { EXPECT_EQ(parsed(kHeader1 + kOne), "8+16 "); }
TEST(ParseUnmap, DescriptorsStayInOrder) {
  EXPECT_EQ(parsed("0026 0020 00000000 0000000000000063 00000001 00000000" + kOne), "99+1 8+16 ");
}
TEST(ParseUnmap, AnEmptyDescriptorIsSkipped) {
  EXPECT_EQ(parsed("0016 0010 00000000 0000000000000008 00000000 00000000"), "");
}
TEST(ParseUnmap, AnEmptyDescriptorMayStandAtTheEnd) {
  EXPECT_EQ(parsed("0016 0010 00000000 0000000000000064 00000000 00000000"), "");
}
TEST(ParseUnmap, PastTheEndIsOutOfRange) {
  EXPECT_EQ(parsed("0016 0010 00000000 0000000000000064 00000001 00000000"), "5/21/00i100");
  EXPECT_EQ(parsed("0016 0010 00000000 0000000000000001 00000064 00000000"), "5/21/00i100");
}
TEST(ParseUnmap, AnExtentThatWrapsAroundIsOutOfRange) {
  EXPECT_EQ(parsed("0016 0010 00000000 ffffffffffffffff 00000002 00000000"), "5/21/00");
}
TEST(ParseUnmap, OneBadDescriptorRefusesTheList) {
  EXPECT_EQ(parsed("0026 0020 00000000" + kOne + "0000000000000065 00000000 00000000"),
            "5/21/00i101");
}
TEST(ParseUnmap, AListShorterThanItsHeaderIsALengthError) {
  EXPECT_EQ(parsed("00160010000000"), "5/1A/00");
}
TEST(ParseUnmap, LessDataThanTheCdbSaysIsALengthError) {
  EXPECT_EQ(parsed(kHeader1 + kOne, 25), "5/1A/00");
}
TEST(ParseUnmap, AnIncompleteDescriptorIsIgnored) {
  EXPECT_EQ(parsed("001f 0019 00000000" + kOne + "000000000000000000"), "8+16 ");
}
TEST(ParseUnmap, ADescriptorThatTheCdbCutsOffIsIgnored) {
  EXPECT_EQ(parsed("0026 0020 00000000" + kOne), "8+16 ");
}
TEST(ParseUnmap, AsManyDescriptorsAsBlockLimitsSayAndNoMore) {
  std::string most = "1006 1000 00000000";
  std::string expected;
  for (int i = 0; i < 256; ++i) {
    most += kOne;
    expected += "8+16 ";
  }
  EXPECT_EQ(parsed(most), expected);
  EXPECT_EQ(parsed("1016 1010 00000000" + most.substr(18) + kOne), "5/26/00@p2");
}

}  // namespace
}  // namespace mariner::scsi
