#include "uvfs/parts/lvm_label.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 4 << 20;
constexpr std::uint64_t kLabelAt = 512;
constexpr std::uint64_t kAreaAt = MadeMember::kAreaAt;
constexpr ByteRange kArea{MadeMember::kAreaAt, MadeMember::kAreaBytes};

class LvmLabelTest : public ::testing::Test {
 protected:
  [[nodiscard]] Result<LvmLabel> label() const {
    return parse_lvm_label(std::span(disk_.bytes).first(kLvmLabelBytes));
  }
  Result<std::optional<std::string>> text(ByteRange area = kArea, std::uint64_t offset = 0) {
    ifsck::Overlay none;
    ifsck::View view(disk_, {}, none);
    const ByteRange member{offset, kBytes - offset};
    return read_lvm_text(view, PartMap::of({&member, 1}, kBytes).value(), area);
  }
  // Of what is spoiled.
  void expect_no_text(const std::string& why) {
    const auto found = text();
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(found.error().message.find(why), std::string::npos) << found.error().message;
  }

  MadeDisk disk_{kBytes};
};

TEST_F(LvmLabelTest, IsInOneOfTheFirstFourSectors) {
  EXPECT_EQ(label().error().code, ErrorCode::kNotFound);
  for (const std::uint64_t sector : {0, 1, 2, 3, 4}) {
    disk_ = MadeDisk(kBytes);
    put_member(disk_, {.sector = sector}, "");
    const auto found = label();
    ASSERT_EQ(found.has_value(), sector < 4) << sector;
    if (!found) continue;
    EXPECT_EQ(found->id, std::string(32, 'A'));
    EXPECT_EQ(found->metadata_areas, std::vector{kArea});
  }
  EXPECT_EQ(parse_lvm_label({}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parse_lvm_label(std::span(disk_.bytes).first(100)).error().code, ErrorCode::kNotFound);
}

TEST_F(LvmLabelTest, ADamagedOneIsSaid) {
  put_member(disk_, {}, "");
  disk_.put(kLabelAt + 32, 'x');
  EXPECT_EQ(label().error().message, "the label in sector 1 has another CRC");
  seal_label(disk_, kLabelAt);
  EXPECT_TRUE(label().has_value());
  disk_.put(kLabelAt + 8, std::uint64_t{2});
  EXPECT_EQ(label().error().message, "the label in sector 1 says that it is in sector 2");
}

TEST_F(LvmLabelTest, ADamagedOneDoesNotHideAnother) {
  put_member(disk_, {.sector = 1}, "");
  disk_.put(kLabelAt + 32, 'x');
  put_member(disk_, {.id = std::string(32, 'B'), .sector = 3}, "");
  EXPECT_EQ(label()->id, std::string(32, 'B'));
}

TEST_F(LvmLabelTest, ListsEndWithinTheSector) {
  for (const std::uint32_t at : {0u, 31u, 473u, 512u, 0xffffffffu}) {
    put_member(disk_, {}, "");
    disk_.put(kLabelAt + 20, at);
    seal_label(disk_, kLabelAt);
    EXPECT_EQ(label().error().code, ErrorCode::kCorrupt) << at;
  }
  put_member(disk_, {}, "");
  for (std::uint64_t at = 72; at < 512; at += 8) disk_.put(kLabelAt + at, std::uint64_t{4096});
  seal_label(disk_, kLabelAt);
  EXPECT_EQ(label().error().message, "the label's lists do not end");
}

TEST_F(LvmLabelTest, TheTextIsWhereTheAreaSays) {
  put_member(disk_, {}, "some text");
  EXPECT_EQ(text().value(), "some text");
  put_member(disk_, {.text_at = 7 * 512}, "the next text");
  EXPECT_EQ(text().value(), "the next text");
  put_member(disk_, {.offset = 1024}, "elsewhere");
  EXPECT_EQ(text(kArea, 1024).value(), "elsewhere");
}

TEST_F(LvmLabelTest, TheTextMayGoRoundTheRing) {
  std::string long_text;
  for (int i = 0; i < 500; ++i) long_text += "line " + std::to_string(i) + "\n";
  put_member(disk_, {.text_at = MadeMember::kAreaBytes - 512}, long_text);
  EXPECT_EQ(text().value(), long_text);
}

TEST_F(LvmLabelTest, AnAreaMayHaveNoText) {
  put_member(disk_, {}, "");
  EXPECT_EQ(text().value(), std::nullopt);
  put_member(disk_, {}, "ignored");
  disk_.put(kAreaAt + 60, std::uint32_t{1});
  seal_area(disk_, kAreaAt);
  EXPECT_EQ(text().value(), std::nullopt);
}

TEST_F(LvmLabelTest, DamageOfAnAreaIsSaid) {
  put_member(disk_, {}, "text");
  disk_.put(kAreaAt + 512, 'T');
  expect_no_text("the text in the metadata area at byte 4096 has another CRC");
  disk_.put(kAreaAt + 100, 'x');
  expect_no_text("the metadata area at byte 4096 has another CRC");
  disk_.put(kAreaAt + 4, 'x');
  expect_no_text("has no signature");
}

TEST_F(LvmLabelTest, WhatAnAreaSaysIsWithinIt) {
  struct Case {
    std::uint64_t at;
    std::uint64_t value;
    const char* why;
  };
  constexpr std::uint64_t kFar = ~std::uint64_t{0};
  for (const Case& each : std::vector<Case>{{24, 8192, "says that it has"},
                                            {32, kFar, "says that it has"},
                                            {32, 512, "says that it has"},
                                            {32, MadeMember::kAreaBytes + 1, "says that it has"},
                                            {40, 511, "says that its text"},
                                            {40, MadeMember::kAreaBytes, "says that its text"},
                                            {40, kFar, "says that its text"},
                                            {48, MadeMember::kAreaBytes, "says that its text"},
                                            {48, kFar, "says that its text"}}) {
    put_member(disk_, {}, "text");
    disk_.put(kAreaAt + each.at, each.value);
    seal_area(disk_, kAreaAt);
    expect_no_text(each.why);
  }
  put_member(disk_, {}, "text");
  disk_.put(kAreaAt + 20, std::uint32_t{2});
  seal_area(disk_, kAreaAt);
  expect_no_text("has version 2, not 1");
}

TEST_F(LvmLabelTest, ATextHasABound) {
  const ByteRange area{kAreaAt, 2 * kLvmTextBytesMax};
  const auto place_of = [&](std::uint64_t length) {
    put_member(disk_, {}, "text");
    disk_.put(kAreaAt + 32, area.length);
    disk_.put(kAreaAt + 48, length);
    seal_area(disk_, kAreaAt);
    return parse_lvm_area(std::span(disk_.bytes).subspan(kAreaAt, kLvmAreaHeaderBytes), area);
  };
  EXPECT_TRUE(place_of(kLvmTextBytesMax).has_value());
  EXPECT_FALSE(place_of(kLvmTextBytesMax + 1).has_value());
}

TEST_F(LvmLabelTest, AnAreaIsWithinThePhysicalVolume) {
  put_member(disk_, {}, "text");
  for (const ByteRange area :
       {ByteRange{kBytes, 512}, ByteRange{4096, kBytes}, ByteRange{~std::uint64_t{0}, 4096},
        ByteRange{4096, 0}, ByteRange{4096, ~std::uint64_t{0}}, ByteRange{4096, 511}}) {
    EXPECT_EQ(text(area).error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace mariner::uvfs
