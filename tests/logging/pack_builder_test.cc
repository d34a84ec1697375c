#include "logging/pack_builder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "logging/pack_regions.h"
#include "logging/pack_verification.h"
#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::expect_reads_back;
using test::expect_shallow;
using test::MadePack;
using test::MemoryPack;
using test::MemoryTracks;
using test::noise;
using test::prose;

constexpr std::uint64_t kTrackBytes = 8u << 20;

// `count` bytes of it become others.
void change(std::span<std::byte> bytes, std::mt19937_64& random, int count) {
  for (int i = 0; i < count; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
}

// Batches of all kinds, of a volume of `lbns` blocks.
void fill_randomly(MemoryTracks& tracks, std::uint64_t seed, std::uint64_t sector_bytes,
                   std::uint64_t lbns) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> volume(lbns, Bytes(kBlockBytes));
  for (int track = 0, count = 1 + static_cast<int>(random() % 3); track < count; ++track) {
    // Of whole sectors and not always of whole blocks; one in eight is tiny or empty.
    const std::uint64_t bytes =
        random() % 8 == 0 ? random() % 12 * 512 : (1u << 20) + random() % 2048 * 512;
    tracks.begin_track(bytes);
    std::uint64_t left = bytes;
    while (true) {
      const std::uint64_t blocks = random() % 5 == 0 ? 1 + random() % 40 : 1 + random() % 3;
      const std::uint64_t needs = sector_bytes + blocks * kBlockBytes;
      if (needs > left || random() % 300 == 0) break;
      left -= needs;
      Bytes header = noise(random(), 200);
      header.resize(sector_bytes);
      tracks.add_header(header);
      const std::uint64_t lbn = random() % (lbns - std::min(blocks, lbns - 1));
      Bytes payload;
      const auto kind = random() % 8;
      for (std::uint64_t i = 0; i < std::min(blocks, lbns - lbn); ++i) {
        Bytes& block = volume[lbn + i];
        if (kind == 0) block = Bytes(kBlockBytes);
        if (kind == 1) block = noise(random(), kBlockBytes);
        if (kind == 2) block = prose(random(), kBlockBytes);
        if (kind == 3 || kind == 4) block = volume[(lbn / 2 + i) % lbns];
        if (kind > 4) change(block, random, 5);
        payload.insert(payload.end(), block.begin(), block.end());
      }
      tracks.add_payload(payload, random() % 20 == 0 ? kNoBlock : lbn,
                         1 + static_cast<std::uint32_t>(random() % 10 == 0));
      if (random() % 50 == 0 && left > 20000) {
        tracks.add_hole(9728);
        left -= 9728;
      }
    }
    tracks.litter(static_cast<std::size_t>(track));
  }
}

RC_GTEST_PROP(PackBuilder, WhatItPacksReadsBackAsItWas, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  MemoryTracks tracks;
  fill_randomly(tracks, seed, *rc::gen::element(512u, 4096u), *rc::gen::inRange(2u, 600u));
  PackOptions options;
  options.level = *rc::gen::element(1, 3, 9);
  options.deduplicate = *rc::gen::element(true, true, false);
  options.deltas = *rc::gen::element(true, true, false);
  options.foreign_regions_max = *rc::gen::element(0u, 4u, 1000u);
  const MadePack made(tracks, options);
  expect_reads_back(tracks, *made.reader, seed, 50);
  expect_shallow(*made.table);
  RC_ASSERT(verify_pack(tracks.tracks(), tracks, *made.reader).has_value());
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(PackBuilder, NoTracksAndEmptyTracks) {
  MemoryTracks none;
  EXPECT_EQ(MadePack(none).pack.bytes.size(), 0u);
  MemoryTracks tracks;
  tracks.begin_track(0);
  tracks.begin_track(512);
  tracks.begin_track(kTrackBytes);
  tracks.litter(2);
  const MadePack made(tracks);
  EXPECT_EQ(made.pack.bytes.size(), 0u);
  expect_reads_back(tracks, *made.reader, 1, 20);
}

TEST(PackBuilder, ZeroBlocksCostNothing) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  tracks.add_payload(Bytes(1u << 20), 0);
  tracks.add_hole(1u << 20);
  tracks.add_payload(noise(1, kBlockBytes), 7);
  const MadePack made(tracks);
  EXPECT_EQ(made.pack.bytes.size(), kBlockBytes);
  EXPECT_EQ(made.table->tracks()[0].pieces.size(), 1u);
  expect_reads_back(tracks, *made.reader);
}

TEST(PackBuilder, WhatDoesNotCompressStandsAsItIs) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  tracks.add_payload(noise(1, 4u << 20), 0);
  const MadePack made(tracks);
  EXPECT_EQ(made.pack.bytes.size(), 4u << 20);
  for (const PackRegion& region : made.table->regions()) {
    EXPECT_EQ(region.stored_bytes, region.plain_bytes);
    EXPECT_EQ(region.plain_bytes, kPackRegionBytes);
  }
  expect_reads_back(tracks, *made.reader);
}

TEST(PackBuilder, HeadersAndPayloadsStandInRegionsOfTheirOwn) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  for (std::uint64_t i = 0; i < 200; ++i) {
    tracks.add_header(noise(1000 + i, kBlockBytes));
    tracks.add_payload(noise(i, kBlockBytes), i);
  }
  const MadePack made(tracks);
  std::set<std::uint32_t> header_regions;
  std::set<std::uint32_t> payload_regions;
  for (const PackPiece& piece : made.table->tracks()[0].pieces) {
    (piece.at / kBlockBytes % 2 == 0 ? header_regions : payload_regions).insert(piece.region);
  }
  EXPECT_EQ(header_regions.size(), 13u);
  EXPECT_EQ(payload_regions.size(), 13u);
  for (const std::uint32_t region : header_regions) EXPECT_FALSE(payload_regions.contains(region));
}

TEST(PackBuilder, APieceIsAsLongAsItsBytesGoOn) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  tracks.add_payload(noise(1, 30 * kBlockBytes), 0);
  tracks.add_payload(noise(2, 2 * kBlockBytes), 500);  // of another record: goes on all the same
  tracks.add_payload(noise(3, 32 * kBlockBytes), 100);
  const MadePack made(tracks);
  EXPECT_EQ(made.table->tracks()[0].pieces.size(), 4u);  // one for each region
}

TEST(PackBuilder, TheSameTracksGiveTheSamePack) {
  MemoryTracks first;
  fill_randomly(first, 7, 512, 300);
  MemoryTracks second;
  fill_randomly(second, 7, 512, 300);
  const MadePack one(first);
  const MadePack other(second);
  EXPECT_EQ(one.pack.bytes, other.pack.bytes);
  EXPECT_EQ(*one.table, *other.table);
}

TEST(PackBuilder, ACopyOfATrackCostsLittle) {
  MemoryTracks tracks;
  const Bytes contents = noise(5, 6u << 20);
  for (int i = 0; i < 5; ++i) {
    tracks.begin_track(kTrackBytes);
    tracks.add_header(noise(static_cast<std::uint64_t>(i), 512));
    tracks.add_payload(contents, 10000 * static_cast<std::uint64_t>(i));
  }
  const MadePack made(tracks);
  EXPECT_LT(made.bytes(), contents.size() + contents.size() / 100);
  expect_reads_back(tracks, *made.reader);
  MemoryTracks& again = tracks;
  EXPECT_GT(MadePack(again, {.deduplicate = false}).bytes(), 5 * contents.size());
}

// Blocks that are written over and over, a little changed each time.
void fill_with_versions(MemoryTracks& tracks, std::uint64_t lbns, int rounds, bool in_order) {
  std::mt19937_64 random(3);
  std::vector<Bytes> volume;
  for (std::uint64_t lbn = 0; lbn < lbns; ++lbn) volume.push_back(prose(lbn, kBlockBytes));
  std::uint64_t left = 0;
  for (std::uint64_t i = 0; i < lbns * static_cast<std::uint64_t>(rounds); ++i) {
    const std::uint64_t lbn = in_order || i < lbns ? i % lbns : random() % lbns;
    if (left < 2 * kBlockBytes) {
      tracks.begin_track(kTrackBytes);
      left = kTrackBytes;
    }
    left -= 2 * kBlockBytes;
    Bytes header = noise(i, 60);
    header.resize(kBlockBytes);
    tracks.add_header(header);
    change(volume[lbn], random, 5);
    tracks.add_payload(volume[lbn], lbn);
  }
}

TEST(PackBuilder, VersionsWithSmallChangesShrinkMoreThanTenTimes) {
  for (const bool in_order : {true, false}) {
    MemoryTracks tracks;
    fill_with_versions(tracks, 100, 60, in_order);
    const MadePack made(tracks);
    EXPECT_LT(made.bytes() * 10, tracks.payload_bytes()) << "in order: " << in_order;
    expect_reads_back(tracks, *made.reader, 1, 50);
    expect_shallow(*made.table);
    EXPECT_GT(MadePack(tracks, {.deltas = false}).bytes(), 3 * made.bytes());
  }
}

// New contents each time make it look for few deltas only, until one is worth it again.
TEST(PackBuilder, FindsDeltasAgainAfterContentsThatHaveNone) {
  const auto deltas_behind = [](int rounds_without) {
    MemoryTracks tracks;
    std::mt19937_64 random(1);
    tracks.begin_track(kTrackBytes);
    tracks.add_hole(512);
    for (int round = 0; round < rounds_without; ++round) {
      tracks.add_payload(noise(random(), 100 * kBlockBytes), 0);
    }
    Bytes contents = noise(9, 100 * kBlockBytes);
    tracks.add_payload(contents, 1000);
    std::mt19937_64 places(2);
    change(contents, places, 200);
    tracks.add_payload(contents, 1000);
    const MadePack made(tracks);
    expect_reads_back(tracks, *made.reader, 1, 50);
    return std::ranges::count_if(made.table->tracks()[0].pieces, [](const PackPiece& piece) {
      return piece.kind == PackPiece::Kind::kDelta;
    });
  };
  const auto all = deltas_behind(0);
  EXPECT_GT(all, 50);
  EXPECT_GE(deltas_behind(3), all - 8);
}

TEST(PackBuilder, ABaseThatIsLongPastIsReadAgain) {
  // More blocks than the builder keeps.
  MemoryTracks tracks;
  std::mt19937_64 random(1);
  for (int round = 0; round < 2; ++round) {
    tracks.begin_track(64u << 20);
    tracks.add_hole(512);
    for (std::uint64_t lbn = 0; lbn < 9000; lbn += 100) {
      Bytes blocks = prose(lbn, 100 * kBlockBytes);
      change(blocks, random, 100 * round);
      tracks.add_payload(blocks, lbn);
    }
  }
  const MadePack made(tracks);
  EXPECT_TRUE(std::ranges::any_of(made.table->tracks()[1].pieces, [](const PackPiece& piece) {
    return piece.kind == PackPiece::Kind::kDelta;
  }));
  expect_reads_back(tracks, *made.reader, 1, 50);
}

TEST(PackBuilder, AVersionOfAnotherVolumeIsNone) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  Bytes block = noise(1, kBlockBytes);
  tracks.add_payload(block, 5, 1);
  block[0] ^= std::byte{1};
  tracks.add_payload(block, 5, 2);
  block[0] ^= std::byte{2};
  tracks.add_payload(block, 5, 1);
  block[0] ^= std::byte{4};
  tracks.add_payload(block);
  const MadePack made(tracks);
  const std::vector<PackPiece>& pieces = made.table->tracks()[0].pieces;
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, 2 * kBlockBytes);
  EXPECT_EQ(pieces[1].kind, PackPiece::Kind::kDelta);
  EXPECT_EQ(pieces[1].base_offset, 0u);
  EXPECT_EQ(pieces[2].kind, PackPiece::Kind::kPlain);
}

// A track of literals in `regions` regions, then one that refers to the first block of each, alone,
// between blocks of its own. Returns to how many regions the first 128 KiB of that refer, besides
// the last, which is still open and so its own.
std::size_t regions_referred(std::size_t regions, bool changed, std::uint32_t max) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  Bytes literals = noise(1, regions * kPackRegionBytes);
  tracks.add_payload(literals, 0);
  tracks.begin_track(kTrackBytes);
  for (std::size_t i = 0; i < regions; ++i) {
    Bytes block(literals.begin() + static_cast<std::ptrdiff_t>(i * kPackRegionBytes),
                literals.begin() + static_cast<std::ptrdiff_t>(i * kPackRegionBytes + kBlockBytes));
    if (changed) block[9] ^= std::byte{1};
    tracks.add_payload(block, i * (kPackRegionBytes / kBlockBytes));
    tracks.add_payload(noise(100 + i, kBlockBytes), 5000 + i);
  }
  const MadePack made(tracks, {.foreign_regions_max = max});
  expect_reads_back(tracks, *made.reader, 1, 20);
  std::set<std::uint32_t> foreign;
  for (const PackPiece& piece : made.table->tracks()[1].pieces) {
    const std::uint32_t region =
        piece.kind == PackPiece::Kind::kDelta ? piece.base_region : piece.region;
    if (piece.at < (128u << 10) && region < regions - 1) foreign.insert(region);
  }
  return foreign.size();
}

TEST(PackBuilder, AStretchRefersToFewForeignRegions) {
  for (const bool changed : {false, true}) {
    EXPECT_EQ(regions_referred(3, changed, 4), 2u);
    EXPECT_EQ(regions_referred(16, changed, 4), 4u);
    EXPECT_EQ(regions_referred(16, changed, 0), 0u);
    EXPECT_EQ(regions_referred(16, changed, 16), 15u);
  }
}

TEST(PackBuilder, ARunOfFourIsReferredToWhateverElseIs) {
  for (const std::size_t run : {3, 4, 5}) {
    MemoryTracks tracks;
    tracks.begin_track(kTrackBytes);
    const Bytes literals = noise(1, 16 * kPackRegionBytes);
    tracks.add_payload(literals);
    tracks.begin_track(kTrackBytes);
    for (std::size_t i = 0; i < 6; ++i) {
      const auto from = literals.begin() + static_cast<std::ptrdiff_t>(i * kPackRegionBytes);
      tracks.add_payload(Bytes(from, from + static_cast<std::ptrdiff_t>(run * kBlockBytes)));
    }
    const MadePack made(tracks, {.foreign_regions_max = 4});
    expect_reads_back(tracks, *made.reader, 1, 20);
    const std::size_t copied = made.pack.bytes.size() - literals.size();
    EXPECT_EQ(copied, run < 4 ? 2 * run * kBlockBytes : 0) << run;
  }
}

TEST(PackBuilder, PassesErrorsOn) {
  MemoryTracks tracks;
  fill_randomly(tracks, 7, 4096, 300);
  const std::uint64_t reads = [&tracks] {
    MadePack made(tracks);
    return tracks.reads;
  }();
  ASSERT_GT(reads, 2u);
  for (std::uint64_t number = 0; number < reads; ++number) {
    MemoryTracks failing;
    fill_randomly(failing, 7, 4096, 300);
    failing.fail_at_read = number;
    MemoryPack pack;
    const auto built = build_pack(failing.tracks(), failing, pack, {});
    ASSERT_FALSE(built);
    EXPECT_EQ(built.error().code, ErrorCode::kIo);
  }
  MemoryPack full;
  full.fail_at_append = 0;
  const auto built = build_pack(tracks.tracks(), tracks, full, {});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kNoSpace);
}

TEST(PackBuilder, PausesEveryFewHundredKilobytesAndEndsWhenTold) {
  MemoryTracks tracks;
  tracks.begin_track(kTrackBytes);
  tracks.add_payload(noise(1, 8u << 20), 0);
  int pauses = 0;
  PackOptions options;
  options.pause = [&pauses]() -> Result<void> {
    ++pauses;
    return {};
  };
  MemoryPack pack;
  ASSERT_TRUE(build_pack(tracks.tracks(), tracks, pack, options));
  EXPECT_EQ(pauses, 64);  // two passes, each 256 KiB
  options.pause = [&pauses]() -> Result<void> {
    if (--pauses == 0) return Error{ErrorCode::kAborted, "enough"};
    return {};
  };
  const auto built = build_pack(tracks.tracks(), tracks, pack, options);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kAborted);
  EXPECT_EQ(pauses, 0);
}

TEST(PackBuilder, RefusesTracksOutOfBounds) {
  MemoryTracks source;
  const auto refused = [&source](std::vector<PackTrack> tracks) {
    MemoryPack pack;
    const auto built = build_pack(tracks, source, pack, {});
    return !built && built.error().code == ErrorCode::kInvalidArgument && source.reads == 0;
  };
  EXPECT_TRUE(refused({{.bytes = (1u << 30) + 512}}));
  EXPECT_TRUE(refused({{.bytes = 512, .used = 1024}}));
  EXPECT_TRUE(refused(std::vector<PackTrack>(5, {.bytes = 1u << 30})));
  EXPECT_TRUE(refused(std::vector<PackTrack>((1u << 16) + 1)));
  const auto with = [](std::vector<PackBlocks> payloads) {
    return std::vector<PackTrack>{{.bytes = 1u << 20, .used = 1u << 20, .payloads = payloads}};
  };
  EXPECT_TRUE(refused(with({{.at = 100, .blocks = 1}})));
  EXPECT_TRUE(refused(with({{.at = 512, .blocks = 0}})));
  EXPECT_TRUE(refused(with({{.at = 512, .blocks = 256}})));
  EXPECT_TRUE(refused(with({{.at = 512, .blocks = UINT32_MAX}})));
  EXPECT_TRUE(refused(with({{.at = 8192, .blocks = 1}, {.at = 0, .blocks = 1}})));
  EXPECT_TRUE(refused(with({{.at = 0, .blocks = 2}, {.at = 4096, .blocks = 1}})));
}

}  // namespace
}  // namespace mariner::logging
