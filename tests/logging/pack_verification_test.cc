#include "logging/pack_verification.h"

#include <gtest/gtest.h>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::MadePack;
using test::MemoryTracks;
using test::noise;

void fill(MemoryTracks& tracks) {
  for (std::uint64_t track = 0; track < 2; ++track) {
    tracks.begin_track((3u << 20) + 512);
    tracks.add_header(noise(track, 512));
    tracks.add_payload(noise(10 + track, 2u << 20), 0);
    tracks.litter(track);
  }
}

TEST(PackVerification, FindsNothingInAWholePack) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  int pauses = 0;
  const auto pause = [&pauses]() -> Result<void> {
    ++pauses;
    return {};
  };
  EXPECT_TRUE(verify_pack(tracks.tracks(), tracks, *made.reader, pause));
  EXPECT_EQ(pauses, 16);
  EXPECT_TRUE(verify_pack(tracks.tracks(), tracks, *made.reader));
}

TEST(PackVerification, NamesTheFirstDifference) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{512}, std::size_t{1234567}, tracks.tracks()[0].used - 1}) {
    Bytes other(tracks.contents(0).begin(), tracks.contents(0).end());
    other[at] ^= std::byte{1};
    other[tracks.tracks()[0].used - 1] ^= std::byte{2};
    tracks.tampered = &other;
    tracks.tampered_from = 0;
    const auto verified = verify_pack(tracks.tracks(), tracks, *made.reader);
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(verified.error().message,
              "track 0 of a pack does not read back as it was at byte " + std::to_string(at));
  }
}

// As with two blocks of one hash: what was taken as equal is not.
TEST(PackVerification, FindsBlocksThatWereTakenAsEqual) {
  MemoryTracks tracks;
  tracks.begin_track(1u << 20);
  const Bytes block = noise(1, kBlockBytes);
  tracks.add_payload(block);
  tracks.add_payload(block);
  Bytes other(tracks.contents(0).begin(), tracks.contents(0).end());
  other[kBlockBytes + 77] ^= std::byte{1};
  tracks.tampered = &other;
  tracks.tampered_from = 1;  // after the first pass over it
  const MadePack made(tracks);
  const auto verified = verify_pack(tracks.tracks(), tracks, *made.reader);
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message,
            "track 0 of a pack does not read back as it was at byte 4173");
  const auto equal = verify_equal(tracks.tracks(), tracks, *made.reader, made.taken_as_equal);
  ASSERT_FALSE(equal);
  EXPECT_EQ(equal.error().message, verified.error().message);
  const MadePack again(tracks, {.deduplicate = false});
  EXPECT_TRUE(verify_pack(tracks.tracks(), tracks, *again.reader));
}

TEST(PackVerification, OfEqualBlocksReadsThoseAlone) {
  MemoryTracks tracks;
  tracks.begin_track(16u << 20);
  const Bytes some = noise(1, 2u << 20);
  tracks.add_payload(some);
  tracks.add_header(noise(3, 4096));
  tracks.add_payload(noise(2, 4u << 20));
  tracks.begin_track(16u << 20);
  tracks.add_payload(some);
  const MadePack made(tracks);
  const std::vector<TakenAsEqual> expected{{1, 0, 2u << 20}};
  EXPECT_EQ(made.taken_as_equal, expected);
  const std::uint64_t before = tracks.reads;
  EXPECT_TRUE(verify_equal(tracks.tracks(), tracks, *made.reader, made.taken_as_equal));
  EXPECT_LE(tracks.reads - before, 4u);
  EXPECT_TRUE(verify_equal(tracks.tracks(), tracks, *made.reader, {}));
  tracks.bytes(1)[(1u << 20) + 17] ^= std::byte{1};
  const auto verified = verify_equal(tracks.tracks(), tracks, *made.reader, made.taken_as_equal);
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message,
            "track 1 of a pack does not read back as it was at byte 1048593");
}

TEST(PackVerification, BehindTheLastBatchAreZeros) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  std::vector<PackTrack> shorter(tracks.tracks().begin(), tracks.tracks().end());
  shorter[1].payloads.clear();
  shorter[1].used = 512;
  const auto verified = verify_pack(shorter, tracks, *made.reader);
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message, "track 1 of a pack does not read back as it was at byte 512");
}

TEST(PackVerification, OtherTracksAreNotThoseOfThePack) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  std::vector<PackTrack> others(tracks.tracks().begin(), tracks.tracks().end());
  others[1].bytes += 512;
  EXPECT_FALSE(verify_pack(others, tracks, *made.reader));
  others.pop_back();
  EXPECT_FALSE(verify_pack(others, tracks, *made.reader));
}

TEST(PackVerification, PassesErrorsOn) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  const auto stop = []() -> Result<void> { return Error{ErrorCode::kAborted, "enough"}; };
  EXPECT_EQ(verify_pack(tracks.tracks(), tracks, *made.reader, stop).error().code,
            ErrorCode::kAborted);
  tracks.fail_at_read = 0;
  EXPECT_EQ(verify_pack(tracks.tracks(), tracks, *made.reader).error().code, ErrorCode::kIo);
  tracks.fail_at_read = UINT64_MAX;
  made.pack.bytes[0] ^= std::byte{1};
  RegionCache fresh(1u << 20);
  const PackReader reader(1, made.table, made.pack, fresh);
  const auto verified = verify_pack(tracks.tracks(), tracks, reader);
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message, "pack 1: region 1 at byte 0 does not have its checksum");
}

}  // namespace
}  // namespace mariner::logging
