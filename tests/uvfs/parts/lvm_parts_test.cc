#include "uvfs/parts/lvm_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMemberBytes = 16 * kMiB;
constexpr std::uint64_t kFirst = 512;  // where the physical volumes are
constexpr std::uint64_t kSecond = 20 * kMiB;

class LvmPartsTest : public ::testing::Test {
 protected:
  // With both physical volumes, or one.
  DiskParts read(std::size_t members = 2) {
    ifsck::Overlay none;
    ifsck::View view(disk_, {}, none);
    std::vector<LvmPlace> places{{"p1", {kFirst, kMemberBytes}}, {"p2", {kSecond, kMemberBytes}}};
    places.resize(members);
    DiskParts parts;
    EXPECT_TRUE(add_lvm_parts(view, places, parts).has_value());
    return parts;
  }
  void put(const std::string& text) { put_first(text), put_second(text); }
  void put_first(const std::string& text) { put_member(disk_, {.offset = kFirst}, text); }
  void put_second(const std::string& text) {
    put_member(disk_, {.offset = kSecond, .id = std::string(32, 'B')}, text);
  }
  static std::string one(const std::string& member, std::uint64_t first) {
    return "segment_count = 1 " + linear_segment(1, 0, 2, member, first);
  }
  static std::vector<std::string> names(const DiskParts& parts) {
    std::vector<std::string> all;
    for (const DiskPart& each : parts.parts) all.push_back(each.name);
    return all;
  }
  using Names = std::vector<std::string>;

  MadeDisk disk_{40 * kMiB};
};

TEST_F(LvmPartsTest, ALogicalVolumeIsWhereItsSegmentsAre) {
  put(group_text(
      {{"root", "segment_count = 3 " + linear_segment(1, 0, 3, "pv1", 4) +
                    linear_segment(2, 3, 1, "pv0", 14) + linear_segment(3, 4, 2, "pv0", 0)}}));
  const auto parts = read();
  ASSERT_EQ(parts.parts.size(), 1U);
  EXPECT_EQ(parts.parts[0].name, "vg-root");
  EXPECT_EQ(parts.parts[0].type, "linear");
  EXPECT_EQ(parts.parts[0].bytes, 6 * kMiB);
  EXPECT_EQ(parts.parts[0].extents, (std::vector<ByteRange>{{kSecond + 5 * kMiB, 3 * kMiB},
                                                            {kFirst + 15 * kMiB, kMiB},
                                                            {kFirst + kMiB, 2 * kMiB}}));
  EXPECT_TRUE(parts.left_out.empty());
  EXPECT_TRUE(parts.notes.empty());
}

TEST_F(LvmPartsTest, NamesAreThoseOfTheDeviceMapper) {
  put(group_text({{"a-b", one("pv0", 0)}, {"a", one("pv0", 2)}}, 1, "my-vg"));
  EXPECT_EQ(names(read()), (Names{"my--vg-a--b", "my--vg-a"}));
}

TEST_F(LvmPartsTest, WhatIsOnAMissingPhysicalVolumeIsLeftOut) {
  put(group_text({{"here", one("pv0", 0)}, {"gone", one("pv1", 0)}}));
  const auto parts = read(1);
  EXPECT_EQ(names(parts), Names{"vg-here"});
  ASSERT_EQ(parts.left_out.size(), 1U);
  EXPECT_EQ(parts.left_out[0].name, "vg-gone");
  EXPECT_EQ(parts.left_out[0].why,
            "its physical volume pv1 (" + std::string(32, 'B') + ") is not on this volume");
}

TEST_F(LvmPartsTest, WhatIsNotLinearIsLeftOut) {
  put(group_text({{"fast",
                   "segment_count = 1 segment1 { start_extent = 0 extent_count = 2 "
                   "type = \"striped\" stripe_count = 2 stripes = [\"pv0\",0,\"pv1\",0] }"},
                  {"odd",
                   "segment_count = 1 segment1 { start_extent = 0 extent_count = 2 type = "
                   "\"\x1b[2J\" }"}}));
  const auto parts = read();
  EXPECT_TRUE(parts.parts.empty());
  ASSERT_EQ(parts.left_out.size(), 2U);
  EXPECT_EQ(parts.left_out[0].why, "its segment1 has 2 stripes");
  EXPECT_EQ(parts.left_out[1].why, "its segment1 is of the type ?[2J");
}

TEST_F(LvmPartsTest, OfTextsThatDifferTheNewestIsTaken) {
  put_first(group_text({{"new", one("pv0", 0)}}, 10));
  put_second(group_text({{"old", one("pv0", 0)}}, 9));
  EXPECT_EQ(names(read()), Names{"vg-new"});
  put_first(group_text({{"old", one("pv0", 0)}}, 9));
  put_second(group_text({{"new", one("pv0", 0)}}, 10));
  EXPECT_EQ(names(read()), Names{"vg-new"});
}

TEST_F(LvmPartsTest, OfADamagedAreaTheOthersTextIsTaken) {
  put(group_text({{"lv", one("pv0", 0)}}));
  disk_.put(kFirst + MadeMember::kAreaAt + 512, 'X');
  const auto parts = read();
  EXPECT_EQ(names(parts), Names{"vg-lv"});
  ASSERT_EQ(parts.notes.size(), 2U);
  EXPECT_EQ(parts.notes[0],
            "LVM2 in p1: the text in the metadata area at byte 4096 has another CRC");
  EXPECT_EQ(parts.notes[1], "LVM2 in p1: none of its metadata can be read");
}

TEST_F(LvmPartsTest, ATextThatCannotBeParsedIsSaid) {
  put_first("vg { id = \"x");
  const auto parts = read(1);
  EXPECT_TRUE(parts.parts.empty());
  ASSERT_EQ(parts.notes.size(), 3U);
  EXPECT_EQ(parts.notes[0], "LVM2 in p1: line 1: a string is not closed");
  EXPECT_EQ(parts.notes[2], "LVM2: no volume group");
}

TEST_F(LvmPartsTest, APhysicalVolumeWithoutAGroupIsSaid) {
  put("");
  EXPECT_EQ(read().notes, std::vector<std::string>{"LVM2: no volume group"});
}

TEST_F(LvmPartsTest, WhereThereIsNoLabelThereIsNothing) {
  const auto parts = read();
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_TRUE(parts.notes.empty());
}

TEST_F(LvmPartsTest, OfTwoPhysicalVolumesWithOneUuidTheFirstCounts) {
  const std::string text = group_text({{"lv", one("pv0", 0)}});
  put_first(text);
  put_member(disk_, {.offset = kSecond}, text);
  const auto parts = read();
  EXPECT_EQ(parts.parts.at(0).extents.at(0).offset, kFirst + kMiB);
  EXPECT_EQ(parts.notes.at(0),
            "LVM2 in p2: another physical volume has its UUID: this one is left out");
}

TEST_F(LvmPartsTest, NamesAreGivenOnce) {
  put_first(group_text({{"lv", one("pv0", 0)}, {"lv", one("pv0", 4)}}));
  put_second(group_text({{"other", one("pv1", 0)}}, 1, "vg", "HHH"));
  const auto parts = read();
  EXPECT_EQ(names(parts), Names{"vg-lv"});
  ASSERT_EQ(parts.left_out.size(), 2U);
  EXPECT_EQ(parts.left_out[0].why, "another logical volume has this name");
  EXPECT_EQ(parts.left_out[1].why, "another volume group has this name");
}

TEST_F(LvmPartsTest, NamesThatLvm2DoesNotAllowAreLeftOut) {
  put(group_text({{"a/b", one("pv0", 0)}, {"..", one("pv0", 2)}}));
  const auto parts = read();
  EXPECT_TRUE(parts.parts.empty());
  ASSERT_EQ(parts.left_out.size(), 2U);
  EXPECT_EQ(parts.left_out[0].name, "vg-?");
  put(group_text({{"lv", one("pv0", 0)}}, 2, "../vg"));
  EXPECT_TRUE(read().parts.empty());
  EXPECT_EQ(read().left_out.at(0).name, "?");
}

TEST_F(LvmPartsTest, SoManyLogicalVolumesAreFound) {
  std::vector<MadeVolume> many;
  for (std::size_t i = 0; i < DiskParts::kPartsMax + 1; ++i) {
    many.push_back({"lv" + std::to_string(i), one("pv0", 0)});
  }
  put_first(group_text(many));
  const auto parts = read(1);
  EXPECT_EQ(parts.parts.size(), DiskParts::kPartsMax);
  ASSERT_EQ(parts.left_out.size(), 1U);
  EXPECT_EQ(parts.left_out[0].why, "there are too many parts");
}

TEST_F(LvmPartsTest, SoManyMetadataAreasAreLookedAt) {
  const std::uint64_t list = kFirst + 512 + 72 + 32;  // in the label
  const auto move_to = [&](std::uint64_t place) {
    put_first(group_text({{"lv", one("pv0", 0)}}));
    for (std::uint64_t i = 0; i < 5; ++i) {
      disk_.put(list + 16 * i, i == place ? MadeMember::kAreaAt : 8 * kMiB + i * 4096);
      disk_.put(list + 16 * i + 8, MadeMember::kAreaBytes);
    }
    seal_label(disk_, kFirst + 512);
  };
  move_to(3);
  EXPECT_EQ(names(read(1)), Names{"vg-lv"});
  EXPECT_EQ(read(1).notes.size(), 3U);
  move_to(4);
  EXPECT_EQ(names(read(1)), Names{});
  EXPECT_EQ(read(1).notes.size(), 6U);  // and that none can be read, and that there is no group
}

TEST_F(LvmPartsTest, ExtentsAreWithinThePhysicalVolumeAndApart) {
  // pv0 says that it has 15 extents: the last ends where it ends.
  put(group_text({{"last", one("pv0", 13)},
                  {"twice", "segment_count = 2 " + linear_segment(1, 0, 2, "pv0", 3) +
                                linear_segment(2, 2, 2, "pv0", 4)}}));
  auto parts = read();
  EXPECT_EQ(names(parts), Names{"vg-last"});
  EXPECT_EQ(parts.parts[0].extents[0].end(), kFirst + kMemberBytes);
  EXPECT_NE(parts.left_out.at(0).why.find("extents overlap"), std::string::npos);
  std::string text = group_text({{"behind", one("pv0", 14)}, {"far", one("pv0", 4'000'000'000)}});
  for (std::size_t at = 0; (at = text.find("pe_count = 15", at)) != std::string::npos; ++at) {
    text.replace(at, 13, "pe_count = 4294967295");
  }
  put(text);
  parts = read();
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_EQ(parts.left_out.at(0).why, "extents 14 to 16 of pv0 are behind the end of it");
}

}  // namespace
}  // namespace mariner::uvfs
