#include "server/scsi/lun.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

TEST(Lun, PeripheralDeviceAddressing) {
  EXPECT_EQ(parse_lun(0), Lun{0});
  EXPECT_EQ(parse_lun(0x0001'0000'0000'0000), Lun{1});
  EXPECT_EQ(parse_lun(0x00FF'0000'0000'0000), Lun{255});
}

TEST(Lun, FlatSpaceAddressing) { EXPECT_EQ(parse_lun(0x4001'0000'0000'0000), Lun{1}); }

TEST(Lun, WhatDoesNotExistHere) {
  EXPECT_EQ(parse_lun(0x0100'0000'0000'0000), std::nullopt) << "bus 1";
  EXPECT_EQ(parse_lun(0x4100'0000'0000'0000), std::nullopt) << "flat LUN 256";
  EXPECT_EQ(parse_lun(0x8000'0000'0000'0000), std::nullopt) << "logical unit addressing";
  EXPECT_EQ(parse_lun(0xC101'0000'0000'0000), std::nullopt) << "well-known LUN";
  EXPECT_EQ(parse_lun(0x0000'0001'0000'0000), std::nullopt) << "second level";
  EXPECT_EQ(parse_lun(1), std::nullopt) << "fourth level";
}

TEST(Lun, TheWellKnownLunOfReportLuns) {
  EXPECT_TRUE(is_report_luns_lun(0xC101'0000'0000'0000));
  EXPECT_FALSE(is_report_luns_lun(0));
}

TEST(Lun, FieldIsParsedBack) {
  for (int lun = 0; lun < 256; ++lun) {
    const Lun expected{static_cast<std::uint8_t>(lun)};
    EXPECT_EQ(parse_lun(lun_field(expected)), expected);
  }
}

TEST(Lun, ListForReportLuns) {
  EXPECT_EQ(testing::hex(encode_lun_list({})), "00 00 00 00 00 00 00 00");
  constexpr Lun kLuns[] = {Lun{0}, Lun{7}};
  EXPECT_EQ(testing::hex(encode_lun_list(kLuns)),
            "00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00");
}

}  // namespace
}  // namespace mariner::scsi
