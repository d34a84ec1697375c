#include "server/scsi/inquiry.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::example_identity;
using testing::hex;

constexpr Geometry kGeometry512{
    .block_bytes = 512, .block_count = 2048, .transfer_blocks_max = 2048};
constexpr Geometry kGeometry4096{
    .block_bytes = 4096, .block_count = 256, .transfer_blocks_max = 256};

std::string page(std::uint8_t number, const Geometry& geometry = kGeometry512) {
  const auto data = vital_product_data(number, example_identity(), geometry, {});
  return data ? hex(*data) : "none";
}

TEST(StandardInquiry, GoldenBytes) {
  EXPECT_EQ(hex(standard_inquiry(example_identity(), false)),
            "00 00 06 12 5b 18 00 02 "  // disk, SPC-4, HISUP, TPGS, 3PC, CMDQUE
            "4d 41 52 49 4e 45 52 20 "  // "MARINER "
            "56 4f 4c 55 4d 45 20 20 20 20 20 20 20 20 20 20 "  // "VOLUME"
            "30 30 30 31 "                                      // "0001"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
            "00 a0 09 60 04 60 04 c0 "  // SAM-5, iSCSI, SPC-4, SBC-3
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
            "00 00");
}

TEST(StandardInquiry, ARemovableMediumIsOneBit) {
  auto data = standard_inquiry(example_identity(), true);
  EXPECT_EQ(std::exchange(data[1], std::uint8_t{0}), 0x80);
  EXPECT_EQ(data, standard_inquiry(example_identity(), false));
}

TEST(StandardInquiry, ALunWithoutUnitHasQualifier3AndType1F) {
  const auto data = absent_unit_inquiry();
  EXPECT_EQ(data[0], 0x7F);
  EXPECT_EQ(data.size(), 36u);
  EXPECT_EQ(data[4], 31);
}

TEST(VitalProductData, SupportedPagesInOrder) {
  EXPECT_EQ(page(0x00), "00 00 00 0a 00 80 83 86 87 88 8f b0 b1 b2");
}

TEST(VitalProductData, EachSupportedPageExistsAndNamesItself) {
  const auto list = *vital_product_data(0x00, example_identity(), kGeometry512, {});
  for (std::size_t i = 4; i < list.size(); ++i) {
    const auto data = vital_product_data(list[i], example_identity(), kGeometry512, {});
    ASSERT_TRUE(data);
    EXPECT_EQ((*data)[1], list[i]);
    EXPECT_EQ(((*data)[2] << 8 | (*data)[3]) + 4u, data->size());
  }
}

TEST(VitalProductData, OtherPagesDoNotExist) {
  EXPECT_EQ(page(0x01), "none");
  EXPECT_EQ(page(0x8A), "none");
  EXPECT_EQ(page(0xFF), "none");
}

TEST(VitalProductData, UnitSerialNumber) {
  EXPECT_EQ(page(0x80), "00 80 00 10 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66");
}

TEST(VitalProductData, DeviceIdentification) {
  EXPECT_EQ(page(0x83),
            "00 83 00 88 "
            "01 03 00 08 30 11 22 33 44 55 66 77 "              // NAA 3h
            "02 01 00 1c 4d 41 52 49 4e 45 52 20 64 62 31 20 "  // "MARINER db1 "
            "30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 "  // serial
            "51 94 00 04 00 00 00 01 "                          // relative port 1
            "51 95 00 04 00 00 00 01 "                          // target port group 1
            "53 98 00 28 69 71 6e 2e 32 30 32 36 2d 31 31 2e 6f 72 67 2e 6d 61 72 69 6e 65 72 3a "
            "64 62 31 2c 74 2c 30 78 30 30 30 31 00 "  // port name
            "00 00 00 "
            "53 a8 00 1c 69 71 6e 2e 32 30 32 36 2d 31 31 2e 6f 72 67 2e 6d 61 72 69 6e 65 72 3a "
            "64 62 31 00");  // target name
}

// SPC-4 7.8.5 and 7.8.10: page 83h tells of the port through which it was asked, page 88h of all.
TEST(VitalProductData, SeveralTargetPorts) {
  Identity identity = example_identity();
  identity.target_ports = {1, 0x2A};
  check_identity(identity);
  const auto ids = hex(*vital_product_data(0x83, identity, kGeometry512, {.port = 0x2A}));
  EXPECT_NE(ids.find("51 94 00 04 00 00 00 2a"), std::string::npos);
  EXPECT_NE(ids.find("51 95 00 04 00 00 00 01"), std::string::npos) << "one group of all ports";
  EXPECT_NE(ids.find("2c 74 2c 30 78 30 30 32 61 00"), std::string::npos) << ",t,0x002a";
  const std::string name =
      "53 98 00 28 69 71 6e 2e 32 30 32 36 2d 31 31 2e 6f 72 67 2e 6d 61 72 69 6e 65 72 3a 64 62 "
      "31 2c 74 2c 30 78 30 30 ";
  EXPECT_EQ(hex(*vital_product_data(0x88, identity, kGeometry512, {})),
            "00 88 00 70 "
            "00 00 00 01 00 00 00 00 00 00 00 2c " +
                name +
                "30 31 00 00 00 00 "
                "00 00 00 2a 00 00 00 00 00 00 00 2c " +
                name + "32 61 00 00 00 00");
}

TEST(VitalProductData, TheGroupOfTheTargetPort) {
  const auto ids =
      hex(*vital_product_data(0x83, example_identity(), kGeometry512, {.port = 1, .group = 0x102}));
  EXPECT_NE(ids.find("51 94 00 04 00 00 00 01"), std::string::npos) << "the port";
  EXPECT_NE(ids.find("51 95 00 04 00 00 01 02"), std::string::npos) << "its group";
}

TEST(VitalProductData, DeviceIdentificationWithALongNaa) {
  Identity identity = example_identity();
  identity.naa = testing::bytes("60 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
  check_identity(identity);
  const auto data = *vital_product_data(0x83, identity, kGeometry512, {});
  EXPECT_EQ(hex(std::span(data).subspan(4, 20)),
            "01 03 00 10 60 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
}

TEST(VitalProductData, BlockLimitsOf512ByteBlocks) {
  EXPECT_EQ(page(0xB0),
            "00 b0 00 3c 01 80 "                    // WSNZ; COMPARE AND WRITE: 64 KiB
            "00 08 "                                // optimal granularity: 4 KiB
            "00 00 08 00 00 00 08 00 "              // maximum and optimal transfer length: 1 MiB
            "00 00 00 00 "                          // prefetch
            "ff ff ff ff 00 00 01 00 "              // UNMAP: any number of blocks, 256 descriptors
            "00 00 00 08 80 00 00 00 "              // unmap granularity and alignment
            "00 00 00 00 00 00 80 00 "              // WRITE SAME: 16 MiB
            "00 00 08 00 00 00 00 00 00 00 00 00 "  // atomic: every write
            "00 00 00 00 00 00 00 00");
}

TEST(VitalProductData, BlockLimitsOf4096ByteBlocks) {
  const auto data = *vital_product_data(0xB0, example_identity(), kGeometry4096, {});
  EXPECT_EQ(hex(std::span(data).subspan(6, 10)), "00 01 00 00 01 00 00 00 01 00");
  EXPECT_EQ(hex(std::span(data).subspan(28, 4)), "00 00 00 01");
}

TEST(VitalProductData, BlockDeviceCharacteristicsDoNotRotate) {
  EXPECT_EQ(page(0xB1).substr(0, 27), "00 b1 00 3c 00 01 00 00 03 ") << "FUAB, VBULS";
}

TEST(VitalProductData, ExtendedInquiry) {
  EXPECT_EQ(page(0x86),
            "00 86 00 3c "
            "00 "           // no protection information
            "07 "           // HEADSUP, ORDSUP and SIMPSUP
            "00 01 00 00 "  // no volatile cache; LUICLR
            "00 01 "        // an extended self-test takes up to a minute
            "00 00 "        // no microcode
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}

TEST(VitalProductData, ModePagePolicyIsShared) {
  EXPECT_EQ(page(0x87), "00 87 00 08 02 00 80 00 3f ff 00 00");
}

TEST(VitalProductData, ProvisioningIsThinAndReadsZero) {
  EXPECT_EQ(page(0xB2), "00 b2 00 04 00 e4 02 00");
}

TEST(Capacity, TenSaysTheLastBlock) {
  EXPECT_EQ(hex(capacity10(kGeometry512)), "00 00 07 ff 00 00 02 00");
}
TEST(Capacity, TenSaysAllOnesWhenTheDiskIsTooLargeForIt) {
  EXPECT_EQ(hex(capacity10({.block_bytes = 512, .block_count = (1ull << 32) + 1})),
            "ff ff ff ff 00 00 02 00");
  EXPECT_EQ(hex(capacity10({.block_bytes = 512, .block_count = (1ull << 32) - 1})),
            "ff ff ff fe 00 00 02 00");
}
TEST(Capacity, SixteenSaysThatPhysicalBlocksHave4KiBAndProvisioningIsThin) {
  EXPECT_EQ(hex(capacity16(kGeometry512)),
            "00 00 00 00 00 00 07 ff 00 00 02 00 00 03 c0 00 "
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(hex(capacity16(kGeometry4096)).substr(0, 47),
            "00 00 00 00 00 00 00 ff 00 00 10 00 00 00 c0 00");
}

TEST(CheckIdentity, RefusesWhatTheFormatsCannotCarry) {
  const auto with = [](auto change) {
    Identity identity = example_identity();
    change(identity);
    return identity;
  };
  EXPECT_DEATH(check_identity(with([](auto& i) { i.naa.resize(4); })), "");
  EXPECT_DEATH(check_identity(with([](auto& i) { i.naa[0] = 0x60; })), "");
  EXPECT_DEATH(check_identity(with([](auto& i) { i.serial = ""; })), "");
  EXPECT_DEATH(check_identity(with([](auto& i) { i.serial = "\x01"; })), "");
  EXPECT_DEATH(check_identity(with([](auto& i) { i.target_name = std::string(224, 'a'); })), "");
}

}  // namespace
}  // namespace mariner::scsi
