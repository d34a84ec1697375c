#include "logging/track.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::hex;
using test::log_id;

using Block = std::array<std::byte, kBlockBytes>;

Superblock superblock() {
  Superblock s;
  s.log = log_id();
  s.disk = 5;
  s.track_sectors = 0x4000;
  s.track_count = 0x112233;
  s.created_ns = 0x2122232425262728;
  s.generation = 0x3132333435363738;
  s.initialised_tracks = 0x4142434445464748;
  s.list_blocks = list_blocks_for(s.track_count);
  s.first_sector = 0x5152535455;
  return s;
}

Block packed(const Superblock& s) {
  Block block;
  pack_superblock(s, block);
  return block;
}

Block packed(const TrackHeader& h) {
  Block block;
  pack_track_header(h, log_id(), block);
  return block;
}

const TrackHeader kTrack{.track = 0x0102030405060708,
                         .allocation = 0x1112131415161718,
                         .first_batch = 0x2122232425262728};

// Everything behind `used` bytes is zero.
bool rest_is_zero(const Block& block, std::size_t used) {
  return std::all_of(block.begin() + static_cast<std::ptrdiff_t>(used), block.end(),
                     [](std::byte b) { return b == std::byte{0}; });
}

void reseal(Block& block) {
  store_le(block.data() + 12, std::uint32_t{0});
  store_le(block.data() + 12, crc32c(block));
}

TEST(Superblock, GoldenBytes) {
  Superblock s = superblock();
  s.rotation = std::chrono::nanoseconds(0x25666768);
  const Block block = packed(s);
  EXPECT_EQ(hex(std::span(block).first(96)),
            "4d415249 4e4c4f47 03000000 49502a29\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "05000000 00400000 33221100 00000000\n"
            "28272625 24232221 38373635 34333231\n"
            "48474645 44434241 ce080000 00100000\n"
            "55545352 51000000 68676625 00000000");
  EXPECT_TRUE(rest_is_zero(block, 96));
}

TEST(Superblock, UnpacksWhatWasPacked) {
  EXPECT_EQ(unpack_superblock(packed(superblock())), superblock());
}

TEST(Superblock, EveryFlippedBitIsFound) {
  Block block = packed(superblock());
  for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(unpack_superblock(block).has_value()) << "bit " << bit;
    block[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Superblock, BoundsAreCheckedBehindTheCrc) {
  const std::pair<const char*, std::function<void(Superblock&)>> cases[] = {
      {"track too small",
       [](Superblock& s) { s.track_sectors = kTrackBytesMin / kBlockBytes - 1; }},
      {"track too large",
       [](Superblock& s) { s.track_sectors = kTrackBytesMax / kBlockBytes + 1; }},
      {"no tracks", [](Superblock& s) { s.track_count = 0; }},
      {"more than 2^40 blocks",
       [](Superblock& s) {
         s.track_count = (1u << 26) + 1;
         s.list_blocks = list_blocks_for(s.track_count);
       }},
      {"absurdly many tracks", [](Superblock& s) { s.track_count = UINT64_MAX; }},
      {"a list of another length", [](Superblock& s) { ++s.list_blocks; }},
  };
  for (const auto& [what, spoil] : cases) {
    Superblock s = superblock();
    s.list_blocks = list_blocks_for(s.track_count);
    spoil(s);
    EXPECT_FALSE(unpack_superblock(packed(s)).has_value()) << what;
  }
  Superblock largest = superblock();
  largest.track_count = 1u << 26;
  largest.list_blocks = list_blocks_for(largest.track_count);
  EXPECT_TRUE(unpack_superblock(packed(largest)).has_value());
}

// Version 4: of a disk whose tracks stand in slots.
Superblock slotted() {
  Superblock s = superblock();
  s.slot_count = 0x22446;
  return s;
}

TEST(SlottedSuperblock, GoldenBytes) {
  const Block block = packed(slotted());
  EXPECT_EQ(hex(std::span(block).first(112)),
            "4d415249 4e4c4f47 04000000 a17ef5d4\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "05000000 00400000 33221100 00000000\n"
            "28272625 24232221 38373635 34333231\n"
            "48474645 44434241 ce080000 00100000\n"
            "55545352 51000000 00000000 00000000\n"
            "46240200 00000000 00000000 00000000");
  EXPECT_TRUE(rest_is_zero(block, 104));
  EXPECT_EQ(unpack_superblock(block), slotted());
}

TEST(SlottedSuperblock, EveryFlippedBitIsFound) {
  Block block = packed(slotted());
  for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(unpack_superblock(block).has_value()) << "bit " << bit;
    block[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(SlottedSuperblock, WhatCannotHaveSlotsIsRefused) {
  const std::pair<const char*, std::function<void(Superblock&)>> cases[] = {
      {"it rotates", [](Superblock& s) { s.rotation = std::chrono::milliseconds(8); }},
      {"small sectors", [](Superblock& s) { s.sector_bytes = 512; }},
      {"more slots than tracks", [](Superblock& s) { s.slot_count = s.track_count + 1; }},
      {"absurdly many slots", [](Superblock& s) { s.slot_count = UINT64_MAX; }},
      {"no room for the map",
       [](Superblock& s) { s.first_sector = reserved_blocks_for(s.list_blocks); }},
  };
  for (const auto& [what, spoil] : cases) {
    Superblock s = slotted();
    spoil(s);
    EXPECT_FALSE(unpack_superblock(packed(s)).has_value()) << what;
  }
  Superblock least = slotted();
  least.first_sector = reserved_blocks_for(least.structure_blocks());
  EXPECT_TRUE(unpack_superblock(packed(least)).has_value());
  Block none = packed(slotted());
  store_le(none.data() + 96, std::uint64_t{0});
  reseal(none);
  EXPECT_FALSE(unpack_superblock(none).has_value()) << "version 4 without slots";
}

TEST(SlottedSuperblock, TheDiskIsAsLongAsItsSlotsAndTheMapStandsBehindTheList) {
  Superblock s = slotted();
  EXPECT_EQ(s.disk_bytes(), (s.first_sector + s.slot_count * s.track_sectors) * kBlockBytes);
  EXPECT_EQ(s.place_count(), s.slot_count);
  EXPECT_EQ(s.map_first_block(0), kListFirstBlock + s.list_blocks);
  EXPECT_EQ(s.map_first_block(1), s.map_first_block(0) + map_blocks_for(s.slot_count));
  EXPECT_EQ(kListFirstBlock + s.structure_blocks(),
            s.map_first_block(1) + map_blocks_for(s.slot_count));
  s.first_sector = kListFirstBlock + s.structure_blocks() + kScratchBlocks;
  ASSERT_TRUE(s.scratch().has_value());
  EXPECT_EQ(s.scratch()->offset, (kListFirstBlock + s.structure_blocks()) * kBlockBytes);
  --s.first_sector;
  EXPECT_FALSE(s.scratch().has_value()) << "it must not reach into the map";
  EXPECT_EQ(superblock().place_count(), superblock().track_count);
}

TEST(Superblock, AnotherVersionOrDiskNumberIsRefused) {
  Block block = packed(superblock());
  block[8] = std::byte{1};
  reseal(block);
  EXPECT_FALSE(unpack_superblock(block).has_value());
  block = packed(superblock());
  block[33] = std::byte{1};  // disk 261
  reseal(block);
  EXPECT_FALSE(unpack_superblock(block).has_value());
}

TEST(Superblock, TracksFollowOneAnother) {
  Superblock s = superblock();
  s.first_sector = 512;
  EXPECT_EQ(s.track_first_sector(0), 512u);
  EXPECT_EQ(s.track_first_sector(2), 512u + 2 * 0x4000);
  EXPECT_EQ(s.track(1), (SectorRange{512 + 0x4000, 0x4000}));
  EXPECT_EQ(s.end_sector(), s.track_first_sector(s.track_count));
}

TEST(Superblock, TracksBeginBehindTheAllocationList) {
  EXPECT_EQ(reserved_blocks_for(list_blocks_for(115'500)), 256u);
  EXPECT_EQ(reserved_blocks_for(list_blocks_for(116'001)), 512u) << "the list takes more room";
  Superblock s = superblock();
  s.first_sector = reserved_blocks_for(s.list_blocks);
  EXPECT_TRUE(unpack_superblock(packed(s)).has_value());
  --s.first_sector;
  EXPECT_FALSE(unpack_superblock(packed(s)).has_value());
}

TEST(Superblock, ADiskThatRotatesMayHaveShortTracksOfSmallSectors) {
  Superblock s = superblock();
  s.sector_bytes = 512;
  s.track_sectors = 700;
  s.rotation = std::chrono::milliseconds(8);
  EXPECT_TRUE(unpack_superblock(packed(s)).has_value());
  s.rotation = {};
  EXPECT_FALSE(unpack_superblock(packed(s)).has_value()) << "too short for one that does not";
  s = superblock();
  s.sector_bytes = 1024;
  EXPECT_FALSE(unpack_superblock(packed(s)).has_value());
}

TEST(TrackHeader, GoldenBytes) {
  const Block block = packed(kTrack);
  EXPECT_EQ(hex(std::span(block).first(56)),
            "4d41524e 5452414b 01000000 1a229c7d\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "08070605 04030201 18171615 14131211\n"
            "28272625 24232221");
  EXPECT_TRUE(rest_is_zero(block, 56));
}

TEST(TrackHeader, UnpacksWhatWasPacked) {
  EXPECT_EQ(unpack_track_header(packed(kTrack), log_id(), kTrack.track), kTrack);
}

TEST(TrackHeader, EveryFlippedBitIsFound) {
  Block block = packed(kTrack);
  for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(unpack_track_header(block, log_id(), kTrack.track).has_value()) << "bit " << bit;
    block[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(TrackHeader, AnotherTrackOrLogIsRefused) {
  const Block block = packed(kTrack);
  EXPECT_FALSE(unpack_track_header(block, log_id(), kTrack.track + 1).has_value());
  EXPECT_FALSE(unpack_track_header(block, log_id(0x11), kTrack.track).has_value());
  TrackHeader never_taken = kTrack;
  never_taken.allocation = 0;
  EXPECT_FALSE(unpack_track_header(packed(never_taken), log_id(), kTrack.track).has_value());
}

TEST(TrackHeader, ASuperblockIsNone) {
  EXPECT_FALSE(unpack_track_header(packed(superblock()), log_id(), 0).has_value());
  EXPECT_FALSE(unpack_superblock(packed(kTrack)).has_value());
}

}  // namespace
}  // namespace mariner::logging
