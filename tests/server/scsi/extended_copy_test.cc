#include "server/scsi/extended_copy.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::bytes;
using testing::hex;

constexpr std::string_view kTarget =
    "e4 00 00 00 01 03 00 08 30 11 22 33 44 55 66 77 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 "
    "00";
constexpr std::string_view kSegment =
    "02 02 00 18 00 00 00 01 00 00 00 10 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 09";

std::string header(std::size_t targets, std::size_t segments, std::string_view flags = "00") {
  char text[64];
  std::snprintf(text, sizeof text, "07 %.2s %04zx 00 00 00 00 %08zx 00 00 00 00", flags.data(),
                targets * 32, segments * 28);
  return text;
}
std::variant<Sense, CopyList> parse(const std::string& list) {
  const std::vector<std::uint8_t> raw = bytes(list);
  return parse_copy_list(std::as_bytes(std::span(raw)));
}
std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += std::string(text) + " ";
  return out;
}
AdditionalSense code_of(const std::string& list) {
  const auto parsed = parse(list);
  return std::holds_alternative<Sense>(parsed) ? std::get<Sense>(parsed).code : asc::kNone;
}
std::string with(std::string text, std::size_t byte, std::string_view value) {
  return text.replace(byte * 3, 2, value);
}

TEST(CopyListParameters, TargetsAndSegments) {
  const auto parsed = parse(header(2, 1) + repeated(kTarget, 2) + std::string(kSegment));
  ASSERT_TRUE(std::holds_alternative<CopyList>(parsed));
  const auto& list = std::get<CopyList>(parsed);
  EXPECT_EQ(list.id, 7);
  EXPECT_TRUE(list.keeps_status);
  ASSERT_EQ(list.targets.size(), 2u);
  EXPECT_EQ(list.targets[1].type, 3);
  EXPECT_EQ(hex(list.targets[1].designator), "30 11 22 33 44 55 66 77");
  EXPECT_EQ(list.targets[1].block_bytes, 512u);
  EXPECT_FALSE(list.targets[1].null);
  ASSERT_EQ(list.segments.size(), 1u);
  EXPECT_TRUE(list.segments[0].destination_counts);
  EXPECT_EQ(list.segments[0].source, 0);
  EXPECT_EQ(list.segments[0].destination, 1);
  EXPECT_EQ(list.segments[0].blocks, 16);
  EXPECT_EQ(list.segments[0].source_lba, 5u);
  EXPECT_EQ(list.segments[0].destination_lba, 9u);
  EXPECT_FALSE(std::get<CopyList>(parse(header(0, 0, "18"))).keeps_status);
}

TEST(CopyListParameters, WhatIsRefused) {
  EXPECT_EQ(code_of("00 00 00"), asc::kParameterListLengthError);
  EXPECT_EQ(code_of(header(1, 0)), asc::kParameterListLengthError) << "cut short";
  EXPECT_EQ(code_of(header(17, 64)), asc::kParameterListLengthError) << "longer than any";
  EXPECT_EQ(code_of(header(17, 0) + repeated(kTarget, 17)), asc::kTooManyCopyTargets);
  EXPECT_EQ(code_of(header(1, 65) + repeated(kTarget, 1) + repeated(kSegment, 65)),
            asc::kTooManyCopySegments);
  EXPECT_EQ(code_of(header(1, 0) + with(std::string(kTarget), 0, "e0")),
            asc::kUnsupportedCopyTargetDescriptor);
  EXPECT_EQ(code_of(header(1, 0) + with(std::string(kTarget), 7, "15")),
            asc::kInvalidFieldInParameterList)
      << "a designator longer than its place";
  EXPECT_EQ(code_of(header(0, 1) + with(std::string(kSegment), 0, "03")),
            asc::kUnsupportedCopySegmentDescriptor);
  EXPECT_EQ(code_of(header(0, 1) + with(std::string(kSegment), 3, "17")),
            asc::kInvalidFieldInParameterList);
  std::string with_inline_data = header(0, 0);
  with_inline_data.back() = '1';
  EXPECT_EQ(code_of(with_inline_data), asc::kInvalidFieldInParameterList);
}

TEST(CopyAnswers, SayWhatTheListsMayBe) {
  const auto parameters = copy_operating_parameters();
  EXPECT_EQ(hex(std::span(parameters).first(16)),
            "00 00 00 2a 00 00 00 00 00 10 00 40 00 00 09 00");
  EXPECT_EQ(hex(std::span(parameters).subspan(43)), "02 02 e4");
  EXPECT_EQ(hex(copy_status({CopyStatus::State::kFailed, 3, 10 << 10})),
            "00 00 00 08 02 00 03 01 00 00 00 0a");
}

}  // namespace
}  // namespace mariner::scsi
