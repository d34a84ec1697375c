#include "uvfs/parts/lvm_group.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

// Why a volume with these segments is refused.
std::string refused(const std::string& segments) {
  const auto group = LvmGroup::parse(group_text({{"lv", segments}}));
  if (!group) return group.error().message;
  EXPECT_EQ(group->volumes.size(), 1U);
  EXPECT_EQ(group->volumes[0].segments.empty(), !group->volumes[0].refused.empty());
  return group->volumes[0].refused;
}
std::string segment(const std::string& rest) {
  return "segment_count = 1 segment1 { start_extent = 0 extent_count = 2 " + rest + " }";
}

TEST(LvmGroupTest, MembersAndSegmentsAreThoseOfTheText) {
  const auto group =
      LvmGroup::parse(group_text({{"lv", "segment_count = 2\n" + linear_segment(1, 0, 3, "pv0", 4) +
                                             linear_segment(2, 3, 2, "pv1", 0)}},
                                 7));
  ASSERT_TRUE(group.has_value()) << group.error().message;
  EXPECT_EQ(group->name, "vg");
  EXPECT_EQ(group->id, "GGGGGG");
  EXPECT_EQ(group->version, 7U);
  EXPECT_EQ(group->extent_bytes, 1U << 20);
  ASSERT_EQ(group->members.size(), 2U);
  EXPECT_EQ(group->members[0].id, std::string(32, 'A'));
  EXPECT_EQ(group->members[0].start_bytes, 1U << 20);
  EXPECT_EQ(group->members[0].extents, 15U);
  ASSERT_EQ(group->volumes.size(), 1U);
  const LvmGroup::Volume& volume = group->volumes[0];
  EXPECT_EQ(volume.refused, "");
  ASSERT_EQ(volume.segments.size(), 2U);
  EXPECT_EQ(volume.segments[0].member, 0U);
  EXPECT_EQ(volume.segments[0].first, 4U);
  EXPECT_EQ(volume.segments[0].extents, 3U);
  EXPECT_EQ(volume.segments[1].member, 1U);
}

TEST(LvmGroupTest, SegmentsAreInTheOrderOfTheirExtents) {
  const auto group =
      LvmGroup::parse(group_text({{"lv", "segment_count = 2\n" + linear_segment(2, 3, 2, "pv1", 0) +
                                             linear_segment(1, 0, 3, "pv0", 4)}}));
  ASSERT_EQ(group->volumes.at(0).segments.size(), 2U);
  EXPECT_EQ(group->volumes[0].segments[0].first, 4U);
}

TEST(LvmGroupTest, OtherKindsOfSegmentsAreRefused) {
  const std::string place = "stripes = [\"pv0\", 0]";
  EXPECT_EQ(refused(segment("type = \"striped\" stripe_count = 1 " + place)), "");
  EXPECT_EQ(refused(segment("type = \"linear\" stripe_count = 1 " + place)), "");
  EXPECT_EQ(refused(segment("type = \"striped\" stripe_count = 2 stripe_size = 128 "
                            "stripes = [\"pv0\", 0, \"pv1\", 0]")),
            "its segment1 has 2 stripes");
  EXPECT_EQ(refused(segment("type = \"raid1\" device_count = 2")),
            "its segment1 is of the type raid1");
  EXPECT_EQ(refused(segment("type = \"thin\" thin_pool = \"pool\"")),
            "its segment1 is of the type thin");
  EXPECT_EQ(refused(segment("stripe_count = 1 " + place)), "its segment1 has no type");
  EXPECT_EQ(refused(segment("type = \"striped\" " + place)), "its segment1 has no stripe_count");
}

TEST(LvmGroupTest, SegmentsAreOnPhysicalVolumesOfTheGroup) {
  const std::string striped = "type = \"striped\" stripe_count = 1 ";
  EXPECT_EQ(refused(segment(striped)), "its segment1 is nowhere");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pv0\"]")), "its segment1 is nowhere");
  EXPECT_EQ(refused(segment(striped + "stripes = [0, \"pv0\"]")), "its segment1 is nowhere");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pv0\", -1]")), "its segment1 is nowhere");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pvmove0\", 0]")),
            "its segment1 is on pvmove0, which is no physical volume");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pv0\", 13]")), "");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pv0\", 14]")),
            "its segment1 has extents 14 to 16 of pv0, which has 15");
  EXPECT_EQ(refused(segment(striped + "stripes = [\"pv0\", 9223372036854775807]")),
            "its segment1 has extents 9223372036854775807 to 9223372036854775809 of pv0, which "
            "has 15");
}

TEST(LvmGroupTest, SegmentsFollowEachOther) {
  const std::string first = linear_segment(1, 0, 3, "pv0", 0);
  EXPECT_EQ(refused("segment_count = 2 " + first + linear_segment(2, 4, 1, "pv1", 0)),
            "its segment2 does not follow the one before");
  EXPECT_EQ(refused("segment_count = 2 " + first + linear_segment(2, 2, 1, "pv1", 0)),
            "its segment2 does not follow the one before");
  EXPECT_EQ(refused("segment_count = 1 " + linear_segment(1, 1, 3, "pv0", 0)),
            "its segment1 does not follow the one before");
  EXPECT_EQ(refused("segment_count = 2 " + first), "it has 1 segments, and is said to have 2");
  EXPECT_EQ(refused("segment_count = 65536 " + first),
            "it has 1 segments, and is said to have 65536");
  EXPECT_EQ(refused("segment_count = 65537 " + first), "it has no segments, or too many");
  EXPECT_EQ(refused("segment_count = 0"), "it has no segments, or too many");
  EXPECT_EQ(refused(""), "it has no segments, or too many");
  EXPECT_EQ(refused("segment_count = 1 " + linear_segment(1, 0, 0, "pv0", 0)),
            "its segment1 has no extents");
  EXPECT_EQ(refused("segment_count = 1 " + linear_segment(1, 0, 4294967297, "pv0", 0)),
            "its segment1 has no extents");
  EXPECT_EQ(refused("segment_count = 1 segment1 { }"), "its segment1 begins nowhere");
}

TEST(LvmGroupTest, WhatNobodySeesIsLeftOutAndSnapshotsAreRefused) {
  const std::string one = "segment_count = 1 " + linear_segment(1, 0, 1, "pv0", 0);
  const std::string snapshot =
      "segment_count = 1 segment1 { start_extent = 0 extent_count = 1 type = \"snapshot\" "
      "chunk_size = 8 origin = \"lv\" cow_store = \"snap\" }";
  const std::string hidden = "[\"READ\", \"WRITE\"]";
  const auto group = LvmGroup::parse(group_text(
      {{"lv", one}, {"pool_tmeta", one, hidden}, {"snap", one}, {"snapshot0", snapshot, hidden}}));
  ASSERT_EQ(group->volumes.size(), 2U);
  EXPECT_EQ(group->volumes[0].refused, "");
  EXPECT_EQ(group->volumes[1].name, "snap");
  EXPECT_EQ(group->volumes[1].refused, "it is a snapshot: what has changed of another volume");
}

TEST(LvmGroupTest, WhatMakesNoSenseAsAWholeIsCorrupt) {
  for (const std::string text :
       {"", "vg = 1", "vg { }", "vg { id = \"x\" seqno = 1 extent_size = 0 }",
        "vg { id = \"x\" seqno = 1 extent_size = 9223372036854775807 }",
        "vg { id = \"x\" seqno = -1 extent_size = 8 }", "vg {"}) {
    const auto group = LvmGroup::parse(text);
    ASSERT_FALSE(group.has_value()) << text;
    EXPECT_EQ(group.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_TRUE(LvmGroup::parse("vg { id = \"x\" seqno = 1 extent_size = 8 }").has_value());
}

TEST(LvmGroupTest, APhysicalVolumeThatMakesNoSenseIsNotThere) {
  std::string text = group_text({{"lv", "segment_count = 1 " + linear_segment(1, 0, 1, "pv1", 0)}});
  text.replace(text.rfind("pe_start = 2048"), 15, "pe_start = -204");
  const auto group = LvmGroup::parse(text);
  EXPECT_EQ(group->members.size(), 1U);
  EXPECT_EQ(group->volumes.at(0).refused, "its segment1 is on pv1, which is no physical volume");
}

TEST(LvmGroupTest, NamesAreThoseThatLvm2Allows) {
  EXPECT_TRUE(is_lvm_name("root"));
  EXPECT_TRUE(is_lvm_name("a-b_c.d+1"));
  EXPECT_TRUE(is_lvm_name(std::string(127, 'a')));
  for (const std::string name : {"", ".", "..", "-a", "a/b", "a b", "a:b", "\xc3\xa4"}) {
    EXPECT_FALSE(is_lvm_name(name)) << name;
  }
  EXPECT_FALSE(is_lvm_name(std::string(128, 'a')));
}

}  // namespace
}  // namespace mariner::uvfs
