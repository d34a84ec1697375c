#include "logging/slot_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "logging/block_frame.h"
#include "logging/superblock_store.h"
#include "proto/bytes.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::kTrackBytes;
using test::ManualExecutor;
using Kind = TrackPlace::Kind;

constexpr std::uint64_t kSlots = 6;
constexpr BlockKind kMap{0x544f4c534e52414d, 1};

Superblock superblock() {
  ManualExecutor executor;
  FaultyDisk disk(executor, {.size_bytes = kReservedBytes + kSlots * kTrackBytes});
  return *format_log(disk, test::log_id(), 2, kTrackBytes, 1, true);
}

// A pack of `bytes` bytes from byte `at` of the slot on, of which the table takes 100.
PackPlace pack_of(std::uint64_t id, PackExtent extent, std::vector<std::uint64_t> tracks) {
  return {.id = id,
          .extents = {extent},
          .table_at = extent.bytes - 100u,
          .table_bytes = 100,
          .tracks = std::move(tracks)};
}

// Tracks 1 and 9 in slots 3 and 0; 4 and 5 in a pack in slot 2.
SlotMap small_map() {
  SlotMap map(superblock());
  map.assign(1, 3);
  map.assign(9, 0);
  map.assign(4, 1);
  map.assign(5, 4);
  map.add_pack(pack_of(1, {2, 0, 5000}, {4, 5}));
  return map;
}

ErrorCode code_of(const std::vector<std::byte>& bytes) {
  const auto found = SlotMap::from_bytes(superblock(), bytes);
  return found ? ErrorCode::kAborted : found.error().code;
}

TEST(SlotMapTest, ANewOneHoldsNothing) {
  const SlotMap map(superblock());
  EXPECT_EQ(map.slot_count(), kSlots);
  EXPECT_EQ(map.free_slots(), kSlots);
  EXPECT_EQ(map.place_of(0), TrackPlace{});
  EXPECT_FALSE(map.open_end().has_value());
}

TEST(SlotMapTest, ATrackTakesASlotAndGivesItBack) {
  SlotMap map(superblock());
  map.assign(40, 5);
  EXPECT_EQ(map.place_of(40), (TrackPlace{Kind::kSlot, 0, 5}));
  EXPECT_FALSE(map.is_free(5));
  EXPECT_EQ(map.free_slots(), kSlots - 1);
  map.release(40);
  map.release(40);
  map.release(41);
  EXPECT_EQ(map.place_of(40), TrackPlace{});
  EXPECT_EQ(map, SlotMap(superblock()));
}

TEST(SlotMapTest, PackedTracksGiveTheirSlotsBackAndThePackGoesWithTheLast) {
  SlotMap map = small_map();
  EXPECT_EQ(map.free_slots(), kSlots - 3);
  EXPECT_TRUE(map.is_free(1) && map.is_free(4));
  EXPECT_EQ(map.place_of(5), (TrackPlace{Kind::kPack, 1, 1}));
  EXPECT_EQ(map.next_pack(), 2u);
  map.release(4);
  EXPECT_EQ(map.pack(1).tracks, (std::vector<std::uint64_t>{PackPlace::kFreed, 5}));
  EXPECT_FALSE(map.is_free(2));
  map.release(5);
  EXPECT_TRUE(map.is_free(2));
  EXPECT_TRUE(map.packs().empty());
  EXPECT_EQ(map.next_pack(), 2u) << "a number is never given again";
}

TEST(SlotMapTest, TracksThatWereFreedAreLeftOutOfANewPack) {
  SlotMap map(superblock());
  map.assign(7, 0);
  map.add_pack(pack_of(1, {1, 0, 4196}, {PackPlace::kFreed, 7}));
  EXPECT_EQ(map.place_of(7), (TrackPlace{Kind::kPack, 1, 1}));
  map.release(7);
  EXPECT_EQ(map.free_slots(), kSlots);
}

TEST(SlotMapTest, TheNextPackBeginsInTheSlotWhereTheLastOneEnds) {
  SlotMap map = small_map();
  const auto room = static_cast<std::uint32_t>(kTrackBytes);
  ASSERT_EQ(map.open_end(), (PackExtent{2, 8192, room - 8192}));
  map.assign(6, 1);
  map.add_pack(pack_of(2, {2, 8192, room - 8192}, {6}));
  EXPECT_FALSE(map.open_end().has_value()) << "it is full";
  map.release(4);
  map.release(5);
  EXPECT_FALSE(map.is_free(2)) << "half of it is used";
  map.release(6);
  EXPECT_TRUE(map.is_free(2));
}

TEST(SlotMapTest, BytesRoundTrip) {
  SlotMap map = small_map();
  map.release(4);
  const auto bytes = map.to_bytes(77);
  EXPECT_EQ(bytes.size(), kBlockBytes);
  const auto found = SlotMap::from_bytes(superblock(), bytes);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->map, map);
  EXPECT_EQ(found->generation, 77u);
  // What stands behind it, from a longer one before, does not count.
  auto longer = bytes;
  longer.resize(bytes.size() + kBlockBytes, std::byte{0x5a});
  EXPECT_EQ(SlotMap::from_bytes(superblock(), longer)->map, map);
}

TEST(SlotMapTest, GoldenBytes) {
  const auto bytes = small_map().to_bytes(3);
  EXPECT_EQ(test::hex(std::span(bytes).first(160)),
            "4d41524e 534c4f54 01000000 edf4f404\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "03000000 00000000 02000000 00000000\n"
            "02000000 00000000 98000000 00000000\n"
            "01000000 02000000 01000000 00000000\n"
            "03000000 09000000 00000000 00000000\n"
            "01000000 00000000 24130000 00000000\n"
            "64000000 01000000 02000000 02000000\n"
            "00000000 88130000 04000000 00000000\n"
            "05000000 00000000 00000000 00000000");
  EXPECT_TRUE(std::ranges::all_of(std::span(bytes).subspan(152),
                                  [](std::byte b) { return b == std::byte{0}; }));
}

TEST(SlotMapTest, EveryFlippedByteIsNoticed) {
  auto bytes = small_map().to_bytes(3);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x20};
    ASSERT_EQ(code_of(bytes), ErrorCode::kCorrupt) << i;
    bytes[i] ^= std::byte{0x20};
  }
  ASSERT_EQ(code_of(bytes), ErrorCode::kAborted) << "whole again";
}

TEST(SlotMapTest, EveryTruncationIsNoticed) {
  const auto bytes = small_map().to_bytes(3);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_EQ(code_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}),
              ErrorCode::kCorrupt)
        << length;
  }
}

TEST(SlotMapTest, OneOfAnotherLogOrDiskIsRefused) {
  Superblock other = superblock();
  other.disk = 3;
  EXPECT_FALSE(SlotMap::from_bytes(other, small_map().to_bytes(3)).has_value());
  other = superblock();
  other.log = test::log_id(0x30);
  EXPECT_FALSE(SlotMap::from_bytes(other, small_map().to_bytes(3)).has_value());
}

// With a CRC that is right: what only a bug or malice writes.
class ForgedSlotMapTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kTrack1 = 72;  // the entry of track 1, then that of track 9
  static constexpr std::size_t kPack = 96;    // id, table_at, table_bytes, extents, tracks
  static constexpr std::size_t kExtent = kPack + 28;
  static constexpr std::size_t kTracks = kExtent + 12;

  template <typename T>
  ErrorCode with(std::size_t at, T value) {
    std::vector<std::byte> bytes = small_map().to_bytes(3);
    store_le(bytes.data() + at, value);
    seal_block(bytes, kMap);
    return code_of(bytes);
  }
};

TEST_F(ForgedSlotMapTest, EntriesOfSlots) {
  EXPECT_EQ(with(kTrack1, std::uint64_t{2}), ErrorCode::kAborted) << "another track may be there";
  EXPECT_EQ(with(kTrack1, std::uint64_t{9}), ErrorCode::kCorrupt) << "a track twice";
  EXPECT_EQ(with(kTrack1, std::uint64_t{5}), ErrorCode::kCorrupt) << "and in a pack";
  EXPECT_EQ(with(kTrack1, kSlots * kTracksPerSlot), ErrorCode::kCorrupt) << "behind the last";
  EXPECT_EQ(with(kTrack1 + 8, std::uint32_t{0}), ErrorCode::kCorrupt) << "a slot twice";
  EXPECT_EQ(with(kTrack1 + 8, std::uint32_t{2}), ErrorCode::kCorrupt) << "and with a pack";
  EXPECT_EQ(with(kTrack1 + 8, std::uint32_t{kSlots}), ErrorCode::kCorrupt);
}

TEST_F(ForgedSlotMapTest, EntriesOfPacks) {
  EXPECT_EQ(with(kPack, std::uint64_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kPack, std::uint64_t{2}), ErrorCode::kCorrupt) << "a number to come";
  EXPECT_EQ(with(kPack + 8, std::uint64_t{4899}), ErrorCode::kCorrupt) << "shorter";
  EXPECT_EQ(with(kPack + 8, UINT64_MAX - 50), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kPack + 16, std::uint32_t{0}), ErrorCode::kCorrupt) << "no table";
  EXPECT_EQ(with(kPack + 20, std::uint32_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kPack + 20, UINT32_MAX), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kPack + 24, std::uint32_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kPack + 24, std::uint32_t{1}), ErrorCode::kCorrupt) << "something behind it";
  EXPECT_EQ(with(kPack + 24, UINT32_MAX), ErrorCode::kCorrupt);
}

TEST_F(ForgedSlotMapTest, Extents) {
  const auto room = static_cast<std::uint32_t>(kTrackBytes);
  EXPECT_EQ(with(kExtent, std::uint32_t{1}), ErrorCode::kAborted) << "another slot will do";
  EXPECT_EQ(with(kExtent, std::uint32_t{3}), ErrorCode::kCorrupt) << "a track stands there";
  EXPECT_EQ(with(kExtent, std::uint32_t{kSlots}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kExtent + 4, std::uint32_t{512}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kExtent + 4, room - 4096), ErrorCode::kCorrupt) << "over the end";
  EXPECT_EQ(with(kExtent + 4, UINT32_MAX - 4095), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kExtent + 8, std::uint32_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(kTracks, std::uint64_t{5}), ErrorCode::kCorrupt) << "a track twice in a pack";
  EXPECT_EQ(with(kTracks, kSlots * kTracksPerSlot), ErrorCode::kCorrupt);
}

TEST_F(ForgedSlotMapTest, TheHead) {
  EXPECT_EQ(with(40, std::uint64_t{0}), ErrorCode::kCorrupt) << "packs count from 1";
  EXPECT_EQ(with(48, std::uint64_t{3}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(48, UINT64_MAX), ErrorCode::kCorrupt);
  EXPECT_EQ(with(56, std::uint64_t{71}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(56, UINT64_MAX), ErrorCode::kCorrupt);
  EXPECT_EQ(with(56, std::uint64_t{153}), ErrorCode::kCorrupt) << "a byte more";
  EXPECT_EQ(with(64, std::uint32_t{2}), ErrorCode::kCorrupt);
  EXPECT_EQ(with(64, UINT32_MAX), ErrorCode::kCorrupt);
}

TEST_F(ForgedSlotMapTest, PacksThatOverlap) {
  SlotMap map = small_map();
  map.assign(6, 1);
  map.add_pack(pack_of(2, {2, 8192, 4196}, {6}));
  auto bytes = map.to_bytes(1);
  const std::size_t second = kTracks + 16 + 28;  // its extent
  ASSERT_EQ(load_le<std::uint32_t>(bytes.data() + second + 4), 8192u);
  store_le(bytes.data() + second + 4, std::uint32_t{4096});
  seal_block(bytes, kMap);
  EXPECT_EQ(code_of(bytes), ErrorCode::kCorrupt);
  // Two packs of one number, and in the wrong order.
  bytes = map.to_bytes(1);
  store_le(bytes.data() + kTracks + 16, std::uint64_t{1});
  seal_block(bytes, kMap);
  EXPECT_EQ(code_of(bytes), ErrorCode::kCorrupt);
}

TEST(SlotMapTest, TheRoomOfACopyIsBounded) {
  SlotMap map(superblock());
  const std::size_t room = std::size_t{map_blocks_for(kSlots)} * kBlockBytes;
  const std::size_t besides = 72 + 28 + kSlots * 12;  // header, the pack's head, every slot
  EXPECT_TRUE(map.has_room((room - besides - 12) / 8, 1));
  EXPECT_FALSE(map.has_room((room - besides - 12) / 8 + 1, 1));
  // As many as there are tracks always fit when they come eight to a pack.
  for (std::uint64_t i = 0; i < kSlots; ++i) {
    std::vector<std::uint64_t> tracks;
    for (std::uint64_t t = 0; t < kTracksPerSlot; ++t) tracks.push_back(i * kTracksPerSlot + t);
    ASSERT_TRUE(map.has_room(kTracksPerSlot, 2)) << i;
    for (std::uint64_t t = 0; t < 2; ++t) map.assign(tracks[t], kSlots - 1 - t);
    for (std::uint64_t t = 2; t < kTracksPerSlot; ++t) tracks[t] = PackPlace::kFreed;
    map.add_pack(pack_of(i + 1, {0, static_cast<std::uint32_t>(i * 8192), 8192}, tracks));
  }
  EXPECT_EQ(SlotMap::from_bytes(superblock(), map.to_bytes(1))->map, map);
}

}  // namespace
}  // namespace mariner::logging
