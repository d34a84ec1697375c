#include "server/scsi/mode.h"

#include <cstdio>

#include "proto/bytes.h"
#include "server/scsi/reply.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::hex;

constexpr Geometry kGeometry{.block_bytes = 512, .block_count = 2048, .transfer_blocks_max = 256};
constexpr auto kDescriptor = "00 00 08 00 00 00 02 00 ";
constexpr auto kCaching = "08 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";
constexpr auto kControl = "0a 0a 02 10 00 00 00 00 ff ff 00 1e";
constexpr auto kControlExtension =
    "4a 01 00 1c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00";
constexpr auto kThresholds = "5c 02 00 0c 00 00 00 00 00 00 00 00 00 00 00 00";

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
// The codes, with the subpages, of the pages in an answer without block descriptor.
std::string pages_in(const ModeSense& command) {
  const auto result = mode_sense(command, {}, kGeometry);
  const auto& data = std::get<std::vector<std::uint8_t>>(result);
  EXPECT_EQ(data[0] + 1u, data.size());
  std::string pages;
  for (std::size_t at = 4; at < data.size();) {
    const bool subpage = (data[at] & 0x40) != 0;
    char text[16];
    std::snprintf(text, sizeof text, subpage ? "%02x/%02x " : "%02x ", data[at] & 0x3F,
                  data[at + 1]);
    pages += text;
    at += subpage ? 4u + load_be<std::uint16_t>(&data[at + 2]) : 2u + data[at + 1];
    EXPECT_LE(at, data.size());
  }
  return pages;
}

TEST(ModeSense, AllPagesInOrder) {
  EXPECT_EQ(pages_in({.block_descriptors = false, .page = 0x3F}), "01 02 07 08 0a 1a 1c ");
}
TEST(ModeSense, AllPagesWithTheirSubpages) {
  EXPECT_EQ(pages_in({.block_descriptors = false, .page = 0x3F, .subpage = 0xFF}),
            "01 02 07 08 0a 0a/01 1a 1c 1c/02 ");
}
TEST(ModeSense, OnePageWithItsSubpages) {
  EXPECT_EQ(pages_in({.block_descriptors = false, .page = 0x0A, .subpage = 0xFF}), "0a 0a/01 ");
  EXPECT_EQ(pages_in({.block_descriptors = false, .page = 0x08, .subpage = 0xFF}), "08 ");
}
TEST(ModeSense, OneSubpage) {
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x0A, .subpage = 1}),
            "23 00 10 00 " + std::string(kControlExtension));
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x1C, .subpage = 2}),
            "13 00 10 00 " + std::string(kThresholds));
}
TEST(ModeSense, OneSubpageOfAllPagesCannotBeAskedFor) {
  EXPECT_EQ(sensed({.page = 0x3F, .subpage = 1}), "5/24/00@3");
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
TEST(ModeSense, ChangeableValues) {
  const auto mask = [](std::uint8_t page, std::uint8_t subpage = 0) {
    return sensed({.block_descriptors = false,
                   .control = PageControl::kChangeable,
                   .page = page,
                   .subpage = subpage});
  };
  EXPECT_EQ(mask(0x08), "17 00 10 00 " + std::string(kCaching));
  EXPECT_EQ(mask(0x0A), "0f 00 10 00 0a 0a 04 00 08 00 00 00 00 00 00 00");
  EXPECT_EQ(mask(0x0A, 1), "23 00 10 00 " + std::string(kControlExtension));
  EXPECT_EQ(mask(0x1C), "0f 00 10 00 1c 0a 0e 0f 00 00 00 00 00 00 00 00");
}
TEST(ModeSense, CurrentValuesFollowTheParametersAndDefaultValuesDoNot) {
  ModeState changed{.write_protected = true};
  const auto page = testing::bytes("0a 0a 06 10 08 00 00 00 ff ff 00 1e");
  ASSERT_FALSE(changed.parameters.take(4, page, 0));
  EXPECT_EQ(sensed({.block_descriptors = false, .page = 0x0A}, changed),
            "0f 00 90 00 " + hex(page));
  EXPECT_EQ(
      sensed({.block_descriptors = false, .control = PageControl::kDefault, .page = 0x0A}, changed),
      "0f 00 90 00 " + std::string(kControl));
}
TEST(ModeSense, NothingIsSaved) {
  EXPECT_EQ(sensed({.control = PageControl::kSaved, .page = 0x3F}), "5/39/00");
}
TEST(ModeSense, OtherPagesDoNotExist) { EXPECT_EQ(sensed({.page = 0x1B}), "5/24/00@2.5"); }
TEST(ModeSense, OtherSubpagesDoNotExist) {
  EXPECT_EQ(sensed({.page = 0x0A, .subpage = 2}), "5/24/00@3");
  EXPECT_EQ(sensed({.page = 0x08, .subpage = 1}), "5/24/00@3");
}

std::string selected(std::string_view list_hex, bool ten = false,
                     std::optional<std::uint32_t> parameter_bytes = {}) {
  const auto list = testing::bytes(list_hex);
  const ModeSelect command{ten, parameter_bytes.value_or(static_cast<std::uint32_t>(list.size()))};
  const auto result = mode_select(command, std::as_bytes(std::span(list)), {}, kGeometry);
  if (const auto* sense = std::get_if<Sense>(&result)) return verdict(*sense);
  const auto& parameters = std::get<ModeParameters>(result);
  return std::string(parameters.descriptor_sense() ? "D_SENSE " : "") +
         (parameters.software_write_protect() ? "SWP" : "");
}

TEST(ModeSelect, NoListIsNoError) { EXPECT_EQ(selected(""), ""); }
TEST(ModeSelect, AHeaderAloneChangesNothing) { EXPECT_EQ(selected("00 00 00 00"), ""); }
TEST(ModeSelect, ChangesDSense) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00 1e"), "D_SENSE ");
}
TEST(ModeSelect, ChangesSwp) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 02 10 08 00 00 00 ff ff 00 1e"), "SWP");
}
TEST(ModeSelect, TakesBackWhatModeSenseSaid) {
  EXPECT_EQ(selected("00 00 10 08 " + std::string(kDescriptor) + kCaching + kControl), "");
}
TEST(ModeSelect, TenByteHeaderWithLongDescriptor) {
  EXPECT_EQ(selected("00 00 00 10 01 00 00 10 00 00 00 00 00 00 08 00 00 00 00 00 00 00 02 00 "
                     "0a 0a 06 10 00 00 00 00 ff ff 00 1e",
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
  EXPECT_EQ(selected("00 00 00 00 0a 0a 02 00 00 00 00 00 ff ff 00 1e"), "5/26/00@p7.4");
}
TEST(ModeSelect, AnUnknownPageIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 1b 0a 00 00 00 00 00 00 00 00 00 00"), "5/26/00@p4.5");
}
TEST(ModeSelect, AnUnknownSubpageIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 4a 02 00 1c"), "5/26/00@p5");
  EXPECT_EQ(selected("00 00 00 00 4a 00 00 08"), "5/26/00@p5") << "subpage 0 has a short header";
  EXPECT_EQ(selected("00 00 00 00 48 01 00 08"), "5/26/00@p5");
}
TEST(ModeSelect, ASubpageComesBackAsItIs) {
  EXPECT_EQ(selected("00 00 00 00 " + std::string(kControlExtension)), "");
  EXPECT_EQ(selected("00 00 00 00 " + std::string(kControlExtension) + kControl + kThresholds), "");
}
TEST(ModeSelect, ASubpageOfAnotherLengthIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 4a 01 00 1b"), "5/26/00@p7");
  EXPECT_EQ(selected("00 00 00 00 4a 01 01 1c"), "5/26/00@p6");
}
TEST(ModeSelect, ASubpageCannotBeChanged) {
  std::string changed = kControlExtension;
  changed[13] = '4';  // TCMOS
  EXPECT_EQ(selected("00 00 00 00 " + changed), "5/26/00@p8.2");
}
TEST(ModeSelect, ThePsBitIsIgnored) {
  EXPECT_EQ(selected("00 00 00 00 8a 0a 06 10 00 00 00 00 ff ff 00 1e"), "D_SENSE ");
}
TEST(ModeSelect, ExceptionsThatContradictThemselvesAreRefused) {
  EXPECT_EQ(selected("00 00 00 00 1c 0a 0c 06 00 00 00 00 00 00 00 01"), "5/26/00@p6.3");
  EXPECT_EQ(selected("00 00 00 00 1c 0a 00 03 00 00 00 00 00 00 00 01"), "5/26/00@p7.3");
  EXPECT_EQ(selected("00 00 00 00 1c 0a 04 06 00 00 00 00 00 00 00 02"), "5/26/00@p15.1");
}
// Each bit that is not in the mask is refused alone, right where it is, and each that is in it is
// taken or contradicts another.
TEST(ModeSelect, EveryBitObeysTheChangeableMask) {
  for (const ModePage& page : mode_pages()) {
    for (std::size_t byte = page.header_bytes(); byte < page.bytes; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        std::vector<std::uint8_t> list(4);
        list.insert(list.end(), page.defaults.begin(), page.defaults.begin() + page.bytes);
        const auto mask = static_cast<std::uint8_t>(1 << bit);
        list[4 + byte] ^= mask;
        const std::string outcome = selected(hex(list));
        const std::string refusal =
            "5/26/00@p" + std::to_string(4 + byte) + "." + std::to_string(bit);
        if ((page.changeable[byte] & mask) == 0) {
          EXPECT_EQ(outcome, refusal) << "page " << int{page.code};
        } else if (page.code != 0x1C) {
          EXPECT_NE(outcome.substr(0, 4), "5/26") << "page " << int{page.code};
        }
      }
    }
  }
}
TEST(ModeSelect, AWrongPageLengthIsRefused) {
  EXPECT_EQ(selected("00 00 00 00 0a 0b 02 10 00 00 00 00 ff ff 00 00 00"), "5/26/00@p5");
}
TEST(ModeSelect, AListCutWithinAnythingIsALengthError) {
  EXPECT_EQ(selected("00 00 00"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 08 00 00 00 00 00 00 02"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00"), "5/1A/00");
  EXPECT_EQ(selected("00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00 1e", false, 17), "5/1A/00");
}
TEST(ModeSelect, OneBadPageRefusesTheWholeList) {
  EXPECT_EQ(selected("00 00 00 00 0a 0a 06 10 00 00 00 00 ff ff 00 1e 1b 00"), "5/26/00@p16.5");
}

}  // namespace
}  // namespace mariner::scsi
