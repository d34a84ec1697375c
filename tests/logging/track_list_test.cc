#include "logging/track_list.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>

#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::hex;
using test::log_id;

using Block = std::array<std::byte, kBlockBytes>;
using Slots = std::vector<std::optional<ListPage>>;

Superblock superblock_of(std::uint64_t tracks) {
  Superblock s;
  s.log = log_id();
  s.track_sectors = test::kTrackBlocks;
  s.track_count = tracks;
  s.list_blocks = list_blocks_for(tracks);
  s.first_sector = reserved_blocks_for(s.list_blocks);
  return s;
}

// The slots of the list on a disk.
struct Medium {
  explicit Medium(const Superblock& superblock) : slots(superblock.list_blocks) {}
  void write(const TrackList::Write& w) {
    if (w.page.tracks.empty()) {
      slots[w.block - kListFirstBlock].reset();
    } else {
      slots[w.block - kListFirstBlock] = w.page;
    }
  }
  void write(const std::vector<TrackList::Write>& writes) {
    for (const TrackList::Write& w : writes) write(w);
  }
  Slots slots;
};

// "3..9: 0 1 2 3 4 5": the allocations and their tracks, "-" for a hole.
std::string text_of(const TrackList& list) {
  std::string text = std::to_string(list.oldest()) + ".." + std::to_string(list.end() - 1) + ":";
  for (std::uint64_t a = list.oldest(); a < list.end(); ++a) {
    const auto track = list.track(a);
    text += " " + (track ? std::to_string(*track) : "-");
  }
  return text;
}

const ListPage kPage{.generation = 0x0102030405060708,
                     .first_allocation = 0x1112131415161718,
                     .oldest = 0x2122232425262728,
                     .tracks = {0x3132333435363738, 0x41}};

Block packed(const ListPage& page) {
  Block block;
  pack_list_page(page, log_id(), block);
  return block;
}

TEST(ListPage, GoldenBytes) {
  const Block block = packed(kPage);
  EXPECT_EQ(hex(std::span(block).first(80)),
            "4d41524e 4c495354 01000000 a350c725\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "08070605 04030201 18171615 14131211\n"
            "28272625 24232221 02000000 00000000\n"
            "38373635 34333231 41000000 00000000");
}

TEST(ListPage, UnpacksWhatWasPacked) {
  EXPECT_EQ(unpack_list_page(packed(kPage), log_id()), kPage);
  ListPage full = kPage;
  full.tracks.assign(kListPageTracks, 7);
  EXPECT_EQ(unpack_list_page(packed(full), log_id()), full);
}

TEST(ListPage, AnotherLogOrImpossibleNumbersAreRefused) {
  EXPECT_FALSE(unpack_list_page(packed(kPage), log_id(0x20)).has_value());
  for (const std::size_t at : {32, 40, 48, 56}) {
    Block block = packed(kPage);
    std::memset(block.data() + at, 0, 8);
    store_le(block.data() + 12, std::uint32_t{0});
    store_le(block.data() + 12, crc32c(block));
    EXPECT_FALSE(unpack_list_page(block, log_id()).has_value()) << at;
  }
  Block block = packed(kPage);
  store_le(block.data() + 56, kListPageTracks + 1);
  store_le(block.data() + 12, std::uint32_t{0});
  store_le(block.data() + 12, crc32c(block));
  EXPECT_FALSE(unpack_list_page(block, log_id()).has_value()) << "too many";
}

TEST(RewriteNotice, IsThatOfItsLogAndNoPage) {
  Block block;
  pack_rewrite_notice(log_id(), block);
  EXPECT_EQ(hex(std::span(block).first(48)),
            "4d41524e 4c4e4557 01000000 9558127d\n"
            "10111213 14151617 18191a1b 1c1d1e1f\n"
            "00000000 00000000 00000000 00000000");
  EXPECT_TRUE(is_rewrite_notice(block, log_id()));
  EXPECT_FALSE(is_rewrite_notice(block, log_id(0x20)));
  EXPECT_FALSE(unpack_list_page(block, log_id()).has_value());
  EXPECT_FALSE(is_rewrite_notice(packed(kPage), log_id()));
  block[kBlockBytes - 1] = std::byte{1};
  EXPECT_FALSE(is_rewrite_notice(block, log_id())) << "torn";
}

TEST(TrackList, ANewLogTakesItsTracksInOrder) {
  EXPECT_EQ(text_of(TrackList(superblock_of(5))), "1..5: 0 1 2 3 4");
}

TEST(TrackList, ReleasedTracksComeRoundAgain) {
  TrackList list(superblock_of(5));
  ASSERT_EQ(list.release(3).size(), 1u);
  EXPECT_EQ(text_of(list), "1..5: 0 1 2 3 4") << "not before it is committed";
  list.committed();
  EXPECT_EQ(text_of(list), "3..7: 2 3 4 0 1");
  ASSERT_EQ(list.release(6).size(), 1u);
  list.abandoned();
  EXPECT_EQ(text_of(list), "3..7: 2 3 4 0 1");
  ASSERT_EQ(list.release(8).size(), 1u);
  list.committed();
  EXPECT_EQ(text_of(list), "8..12: 2 3 4 0 1");
}

TEST(TrackList, ALargeReleaseGoesInSteps) {
  TrackList list(superblock_of(2000));
  EXPECT_LE(list.release(1501).size(), 2u);
  list.committed();
  EXPECT_EQ(list.oldest(), 501u);
  EXPECT_EQ(list.end(), 2501u);
}

TEST(TrackList, IsFoundAgainFromItsPages) {
  const Superblock superblock = superblock_of(1200);
  Medium medium(superblock);
  TrackList list(superblock);
  medium.write(list.all_pages());
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const Result<TrackList> found = TrackList::from_pages(superblock, medium.slots);
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    ASSERT_EQ(text_of(*found), text_of(list));
    medium.write(list.release(list.oldest() + random() % 130));
    list.committed();
  }
  EXPECT_GT(list.oldest(), 12'000u) << "round many times";
}

// A crash between two pages of one release, or in the middle of a page: everything that is live
// keeps its place, and no track is lost for ever.
TEST(TrackList, SurvivesACrashAtEveryPage) {
  const Superblock superblock = superblock_of(1200);
  std::mt19937_64 random(2);
  Medium medium(superblock);
  TrackList list(superblock);
  medium.write(list.all_pages());
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t oldest = std::min(list.oldest() + 1 + random() % 500, list.end() - 1);
    const auto writes = list.release(oldest);
    const std::size_t survive = random() % (writes.size() + 1);
    for (std::size_t i = 0; i < survive; ++i) medium.write(writes[i]);
    if (survive < writes.size() && random() % 2 == 0) {
      medium.slots[writes[survive].block - kListFirstBlock].reset();  // torn
    }
    Result<TrackList> found = TrackList::from_pages(superblock, medium.slots);
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    for (std::uint64_t a = oldest; a < list.end(); ++a) ASSERT_EQ(found->track(a), list.track(a));
    ASSERT_TRUE(found->oldest() == list.oldest() || found->oldest() == oldest);
    list = *std::move(found);
    medium.write(list.release(list.oldest() + 1));
    list.committed();
    std::set<std::uint64_t> tracks;
    for (std::uint64_t a = list.oldest(); a < list.end(); ++a) tracks.insert(*list.track(a));
    ASSERT_EQ(tracks.size(), 1200u) << "every track has its place again";
  }
}

TEST(TrackList, DamageOfALivePageIsNoticed) {
  const Superblock superblock = superblock_of(1200);
  Medium medium(superblock);
  TrackList list(superblock);
  medium.write(list.all_pages());
  for (const std::size_t slot : {0u, 1u}) {
    Slots damaged = medium.slots;
    damaged[slot].reset();
    const Result<TrackList> found = TrackList::from_pages(superblock, damaged);
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(TrackList::from_pages(superblock, Slots(superblock.list_blocks)).has_value());
  Slots twice = medium.slots;
  twice[0]->tracks[3] = 4;
  EXPECT_FALSE(TrackList::from_pages(superblock, twice).has_value());
  Slots outside = medium.slots;
  outside[0]->tracks[3] = 1200;
  EXPECT_FALSE(TrackList::from_pages(superblock, outside).has_value());
}

TEST(TrackList, IsRebuiltFromTheTracks) {
  const Superblock superblock = superblock_of(6);
  Medium medium(superblock);
  TrackList list(superblock);
  medium.write(list.all_pages());
  // Allocations 8 to 11 in tracks 1, 2, 4, 5; 10's header is damaged.
  const std::vector<TrackHeader> headers{{1, 8, 1}, {2, 9, 5}, {5, 11, 20}};
  TrackList rebuilt = TrackList::from_headers(superblock, headers, medium.slots);
  medium.write(rebuilt.all_pages());
  EXPECT_EQ(text_of(rebuilt), "8..14: 1 2 - 5 0 3 4");
  const Result<TrackList> found = TrackList::from_pages(superblock, medium.slots);
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  EXPECT_EQ(text_of(*found), text_of(rebuilt));
}

TEST(TrackList, AStrayHeaderFarBackDoesNotStretchARebuiltList) {
  const Superblock superblock = superblock_of(2000);
  const std::vector<TrackHeader> headers{{0, 1, 1}, {1, 100'000, 9}, {2, 100'001, 12}};
  const TrackList rebuilt = TrackList::from_headers(superblock, headers, {});
  EXPECT_EQ(rebuilt.oldest(), 100'000u);
}

}  // namespace
}  // namespace mariner::logging
