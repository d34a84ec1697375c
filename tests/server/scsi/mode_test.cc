#include "server/scsi/mode.h"

#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::hex;

constexpr Geometry kGeometry{.block_bytes = 512, .block_count = 2048, .transfer_blocks_max = 256};
constexpr auto kDescriptor = "00 00 08 00 00 00 02 00 ";
constexpr auto kCaching = "08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";
constexpr auto kControl = "0a 0a 00 10 00 00 00 00 ff ff 00 00";

std::string verdict(const Sense& sense) {
  return testing::outcome_of(check_condition(sense, SenseFormat::kFixed)).verdict();
}

std::string sensed(const ModeSense& command, const ModeState& state = {},
                   const Geometry& geometry = kGeometry) {
  const auto result = mode_sense(command, state, geometry);
  if (const auto* sense = std::get_if<Sense>(&result)) return verdict(*sense);
  return hex(std::get<std::vector<std::uint8_t>>(result));
}

TEST(ModeSense, OnePageWithHeaderAndBlockDescriptor) {
  EXPECT_EQ(sensed({.page = 0x08}), "1f 00 10 08 " + std::string(kDescriptor) + kCaching);
}
TEST(ModeSense, WithoutBlockDescriptor) {
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x0A}),
            "0f 00 10 00 " + std::string(kControl));
}
TEST(ModeSense, AllPagesInOrder) {
  const std::string both = "23 00 10 00 " + std::string(kCaching) + " " + kControl;
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x3F}), both);
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x3F, .subpage = 0xFF}), both);
}
TEST(ModeSense, TenByteHeader) {
  EXPECT_EQ(sensed({.ten = true, .page = 0x0A}),
            "00 1a 00 10 00 00 00 08 " + std::string(kDescriptor) + kControl);
}
TEST(ModeSense, LongBlockDescriptor) {
  EXPECT_EQ(sensed({.ten = true, .long_lba = true, .page = 0x0A}),
            "00 22 00 10 01 00 00 10 00 00 00 00 00 00 08 00 00 00 00 00 00 00 02 00 " +
                std::string(kControl));
}
TEST(ModeSense, ShortBlockDescriptorOfALargeDiskSaysAllOnes) {
  const Geometry large{.block_bytes = 512, .block_count = 1ull << 33, .transfer_blocks_max = 256};
  EXPECT_EQ(sensed({.page = 0x0A}, {}, large).substr(12, 23), "ff ff ff ff 00 00 02 00");
}
TEST(ModeSense, WriteProtectedMedium) {
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x0A}, {.write_protected = true}),
            "0f 00 90 00 " + std::string(kControl));
}
TEST(ModeSense, ChangeableValuesAreDSenseAndSwp) {
  EXPECT_EQ(sensed({.block_descriptors = false, .control = PageControl::kChangeable, .page = 0x3F}),
            "23 00 10 00 08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
            "0a 0a 04 00 08 00 00 00 00 00 00 00");
}
TEST(ModeSense, CurrentValuesFollowTheParametersAndDefaultValuesDoNot) {
  const ModeState changed{{.descriptor_sense = true, .software_write_protect = true}, true};
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x0A}, changed),
            "0f 00 90 00 0a 0a 04 10 08 00 00 00 ff ff 00 00");
  EXPECT_EQ(
      sensed({.block_descriptors = false, .control = PageControl::kDefault, .page = 0x0A}, changed),
      "0f 00 90 00 " + std::string(kControl));
}
TEST(ModeSense, NothingIsSaved) {
  EXPECT_EQ(sensed({.control = PageControl::kSaved, .page = 0x3F}), "5/39/00");
}
TEST(ModeSense, OtherPagesDoNotExist) { EXPECT_EQ(sensed({.page = 0x1C}), "5/24/00@2.5"); }
TEST(ModeSense, OtherSubpagesDoNotExist) {
  EXPECT_EQ(sensed({.page = 0x0A, .subpage = 1}), "5/24/00@3");
}

std::string selected(std::string_view list_hex, bool ten = false,
                     std::optional<std::uint32_t> parameter_bytes = {}) {
  const auto list = testing::bytes(list_hex);
  const ModeSelect command{ten, parameter_bytes.value_or(static_cast<std::uint32_t>(list.size()))};
  const auto result = mode_select(command, std::as_bytes(std::span(list)), {}, kGeometry);
  if (const auto* sense = std::get_if<Sense>(&result)) return verdict(*sense);
  const auto& parameters = std::get<ModeParameters>(result);
  return std::string(parameters.descriptor_sense ? "D_SENSE " : "") +
         (parameters.software_write_protect ? "SWP" : "");
}

TEST(ModeSelect, NoListIsNoError) { EXPECT_EQ(selected(""), ""); }
TEST(ModeSelect, AHeaderAloneChangesNothing) { EXPECT_EQ(selected("00 00 00 00"), ""); }
TEST(ModeSelect, ChangesDSense) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 04 10 00 00 00 00 ff ff 00 00"), "D_SENSE ");
}
TEST(ModeSelect, ChangesSwp) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 00 10 08 00 00 00 ff ff 00 00"), "SWP");
}
TEST(ModeSelect, TakesBackWhatModeSenseSaid) {
  EXPECT_EQ(selected("00 00 10 08 " + std::string(kDescriptor) + kCaching + kControl), "");
}
TEST(ModeSelect, TenByteHeaderWithLongDescriptor) {
  EXPECT_EQ(selected("00 00 00 10 01 00 00 10 00 00 00 00 00 00 08 00 00 00 00 00 00 00 02 00 "
                     "0a 0a 04 10 00 00 00 00 ff ff 00 00",
                     true),
            "D_SENSE ");
}
TEST(ModeSelect, ANumberOfBlocksOfZeroKeepsTheCapacity) {
  EXPECT_EQ(selected("00 00 00 08 00 00 00 00 00 00 02 00"), "");
}
TEST(ModeSelect, AnotherCapacityIsRefused) {
  EXPECT_EQ(selected("00 00 00 08 00 00 08 01 00 00 02 00"), "5/26/00@p7");
}
TEST(ModeSelect, AnotherBlockLengthIsRefused) {
  EXPECT_EQ(selected("00 00 00 08 00 00 00 00 00 00 10 00"), "5/26/00@p10");
}
TEST(ModeSelect, AnotherDescriptorLengthIsRefused) {
  EXPECT_EQ(selected("00 00 00 07 00 00 00 00 00 00 02"), "5/26/00@p4");
}
TEST(ModeSelect, AMediumTypeIsRefused) { EXPECT_EQ(selected("00 01 00 00"), "5/26/00@p1"); }
TEST(ModeSelect, TheWriteCacheCannotBeEnabled) {
  EXPECT_EQ(selected("00 00 00 00 08 12 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"),
            "5/26/00@p6.2");
}
TEST(ModeSelect, WhatIsNotChangeableIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 00 00 00 00 00 00 ff ff 00 00"), "5/26/00@p7.4");
}
TEST(ModeSelect, AnUnknownPageIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 1c 0a 00 00 00 00 00 00 00 00 00 00"), "5/26/00@p4.5");
}
TEST(ModeSelect, ASubpageIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 4a 0a 00 10 00 00 00 00 ff ff 00 00"), "5/26/00@p4.6");
}
TEST(ModeSelect, AWrongPageLengthIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 0a 0b 00 10 00 00 00 00 ff ff 00 00 00"), "5/26/00@p5");
}
TEST(ModeSelect, AListCutWithinAnythingIsALengthError) {
  EXPECT_EQ(selected("00 00 00"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 08 00 00 00 00 00 00 02"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a 0a 04 10 00 00 00 00 ff ff 00"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a 0a 04 10 00 00 00 00 ff ff 00 00", false, 17), "5/1A/00");
}
TEST(ModeSelect, OneBadPageRefusesTheWholeList) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 04 10 00 00 00 00 ff ff 00 00 1c 00"), "5/26/00@p16.5");
}

}  // namespace
}  // namespace mariner::scsi
