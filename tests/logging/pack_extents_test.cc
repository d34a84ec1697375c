#include "logging/pack_extents.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::kTrackBytes;
using test::SlotRig;

class PackExtentsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  // What stands in the extents, one after another.
  std::vector<std::byte> bytes_in(const std::vector<PackExtent>& extents) {
    std::vector<std::byte> all;
    for (const PackExtent& extent : extents) {
      const auto bytes = rig_.disk.bytes({rig_.slotted().offset_of(extent), extent.bytes});
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  static std::vector<std::byte> bytes_of(std::uint64_t seed, std::size_t length) {
    const Payload payload =
        test::payload_of(seed, static_cast<std::uint32_t>(length / kBlockBytes + 1));
    return {payload.data(), payload.data() + length};
  }
  // A pack that holds nothing which anybody needs, so that the next one begins behind it.
  void add(const std::vector<PackExtent>& extents) {
    SlotMap map = rig_.slotted().map();
    std::uint64_t length = 0;
    for (const PackExtent& extent : extents) length += extent.bytes;
    map.add_pack({.id = map.next_pack(),
                  .extents = extents,
                  .table_at = length - 1,
                  .table_bytes = 1,
                  .tracks = {*rig_.member().tracks.track(1)}});
    rig_.slotted().adopt(std::move(map), rig_.slotted().generation() + 1);
    rig_.slotted().end_building();
  }
  SlotRig rig_;
};

TEST_F(PackExtentsTest, WhatIsAppendedStandsInSlotsDurably) {
  const auto expected = bytes_of(1, kTrackBytes + 5000);
  PackExtents sink(rig_.slotted(), {.bytes_max = 2 * kTrackBytes, .leave_slots = 0});
  for (std::size_t at = 0; at < expected.size();) {
    const std::size_t piece = std::min<std::size_t>(expected.size() - at, 77'777);
    ASSERT_TRUE(sink.append(std::span(expected).subspan(at, piece)).has_value());
    at += piece;
  }
  ASSERT_TRUE(sink.finish().has_value());
  EXPECT_EQ(sink.bytes(), expected.size());
  ASSERT_EQ(sink.extents().size(), 2u);
  EXPECT_EQ(sink.extents()[0].bytes, kTrackBytes);
  EXPECT_EQ(sink.extents()[1].bytes, 5000u);
  EXPECT_EQ(bytes_in(sink.extents()), expected);
  const auto rest = rig_.disk.bytes({rig_.slotted().offset_of(sink.extents()[1]) + 5000, 3192});
  EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; }));
  rig_.disk.cut_power();
  rig_.disk.restore_power();
  EXPECT_EQ(bytes_in(sink.extents()), expected);
}

TEST_F(PackExtentsTest, WhatIsWrittenBesideStandsThereTheSame) {
  const auto expected = bytes_of(1, kTrackBytes + 5000);
  Beside beside("extents-test");
  PackExtents sink(rig_.slotted(), {.bytes_max = 2 * kTrackBytes, .leave_slots = 0}, &beside);
  for (std::size_t at = 0; at < expected.size();) {
    const std::size_t piece = std::min<std::size_t>(expected.size() - at, 77'777);
    ASSERT_TRUE(sink.append(std::span(expected).subspan(at, piece)).has_value());
    at += piece;
  }
  ASSERT_TRUE(sink.finish().has_value());
  EXPECT_EQ(bytes_in(sink.extents()), expected);
  rig_.disk.cut_power();
  rig_.disk.restore_power();
  EXPECT_EQ(bytes_in(sink.extents()), expected);
}

TEST_F(PackExtentsTest, AnErrorOfWhatIsWrittenBesideIsToldLater) {
  Beside beside("extents-test");
  PackExtents sink(rig_.slotted(), {.bytes_max = UINT64_MAX, .leave_slots = 0}, &beside);
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  const Result<void> appended = sink.append(bytes_of(1, kTrackBytes));
  EXPECT_EQ((appended ? sink.finish() : appended).error().code, ErrorCode::kIo);
  rig_.slotted().end_building();
}

TEST_F(PackExtentsTest, TheNextPackBeginsBehindTheLastAndLeavesItAlone) {
  const auto first = bytes_of(1, 5000);
  PackExtents one(rig_.slotted(), {.bytes_max = kTrackBytes, .leave_slots = 0});
  ASSERT_TRUE(one.append(first).has_value());
  ASSERT_TRUE(one.finish().has_value());
  add(one.extents());
  const auto second = bytes_of(2, kTrackBytes);
  PackExtents two(rig_.slotted(), {.bytes_max = kTrackBytes, .leave_slots = 0});
  ASSERT_TRUE(two.append(second).has_value());
  ASSERT_TRUE(two.finish().has_value());
  ASSERT_EQ(two.extents().size(), 2u);
  EXPECT_EQ(two.extents()[0].slot, one.extents()[0].slot);
  EXPECT_EQ(two.extents()[0].at, 8192u);
  EXPECT_EQ(two.extents()[1].bytes, 8192u);
  EXPECT_EQ(bytes_in(two.extents()), second);
  EXPECT_EQ(bytes_in(one.extents()), first);
}

TEST_F(PackExtentsTest, EndsAtItsBounds) {
  PackExtents small(rig_.slotted(), {.bytes_max = 5000, .leave_slots = 0});
  EXPECT_TRUE(small.append(bytes_of(1, 5000)).has_value());
  EXPECT_EQ(small.append(bytes_of(1, 1)).error().code, ErrorCode::kLimit);
  rig_.slotted().end_building();
  const std::uint64_t usable = rig_.slotted().usable_slots();
  PackExtents full(rig_.slotted(), {.bytes_max = UINT64_MAX, .leave_slots = usable - 1});
  ASSERT_TRUE(full.append(bytes_of(1, kTrackBytes)).has_value()) << "one slot may be taken";
  EXPECT_EQ(full.append(bytes_of(1, 1u << 20)).error().code, ErrorCode::kNoSpace);
  rig_.slotted().end_building();
  EXPECT_EQ(rig_.slotted().usable_slots(), usable) << "nothing is lost";
}

TEST_F(PackExtentsTest, ErrorsOfTheDiskArePassedOn) {
  PackExtents sink(rig_.slotted(), {.bytes_max = kTrackBytes, .leave_slots = 0});
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  ASSERT_TRUE(sink.append(bytes_of(1, 100)).has_value());
  EXPECT_EQ(sink.finish().error().code, ErrorCode::kIo);
  rig_.slotted().end_building();
}

}  // namespace
}  // namespace mariner::logging
