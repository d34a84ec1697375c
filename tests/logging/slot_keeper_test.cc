#include "logging/slot_keeper.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "logging/slot_store.h"
#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::FaultyDisk;
using test::kTrackBytes;
using test::SlotRig;
using Kind = TrackPlace::Kind;

class SlotKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  [[nodiscard]] static std::string code_of(const std::optional<Result<void>>& outcome) {
    if (!outcome) return "none yet";
    return *outcome ? "ok" : std::string(error_code_name(outcome->error().code));
  }
  // A pack, as one that has been written, of the tracks of these allocations.
  static PackPlace pack_of(SlotRig& rig, const std::vector<std::uint64_t>& allocations) {
    PackPlace place{.table_at = 4000, .table_bytes = 100};
    const auto extent = rig.slotted().take_extent(0);
    EXPECT_TRUE(extent.has_value());
    place.extents = {{extent->slot, extent->at, 4100}};
    for (const auto a : allocations) place.tracks.push_back(*rig.member().tracks.track(a));
    return place;
  }
  static void add_pack(SlotRig& rig, PackPlace place, std::optional<Result<void>>& outcome) {
    rig.slots().add_pack(std::move(place), [&rig, &outcome](Result<void> result) {
      outcome = std::move(result);
      rig.slotted().end_building();
    });
  }
  // The map becomes so long that it can be torn: a disk writes whole sectors.
  static PackPlace long_pack_of(SlotRig& rig, std::uint64_t allocation) {
    PackPlace place = pack_of(rig, {allocation});
    place.tracks.resize(200, PackPlace::kFreed);
    return place;
  }
  static std::uint64_t generation_on(FaultyDisk& disk, const Superblock& superblock) {
    const auto found = read_slot_map(disk, superblock);
    return found ? found->generation : 0;
  }

  SlotRig rig_;
};

TEST_F(SlotKeeperTest, TheNextTracksHaveSlotsAhead) {
  EXPECT_EQ(rig_.slots().free_tracks(0), 8u);
  EXPECT_EQ(rig_.place(1).kind, Kind::kSlot);
  EXPECT_EQ(rig_.place(2).kind, Kind::kSlot) << "a quarter of what is free";
  EXPECT_EQ(rig_.place(3).kind, Kind::kNowhere);
  EXPECT_EQ(read_slot_map(rig_.disk, rig_.superblock)->map, rig_.slotted().map());
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(SlotKeeperTest, TheWriterGoesOnUntilTheReserveIsLeft) {
  for (std::uint64_t i = 1; i <= 20; ++i) {
    rig_.leave_track();
    rig_.append(i);
    ASSERT_EQ(rig_.check_slots(), "ok") << i;
    if (i <= 6) {
      ASSERT_EQ(rig_.member().log_disk->free_tracks(), 8 - i);
    }
  }
  EXPECT_EQ(rig_.durable.size(), 6u) << "two of eight are kept for those who make room";
  EXPECT_EQ(rig_.failures, std::vector<std::string>(14, "no-space"));
}

// What is logged again for the sake of its first tracks comes before there is room.
TEST_F(SlotKeeperTest, HalfOfAPackIsKeptUntilItIsGone) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    rig_.leave_track();
    rig_.append(i);
  }
  const LogWriter& writer = rig_.array->writer();
  EXPECT_EQ(writer.kept_tracks(), 2u);
  std::optional<Result<void>> outcome;
  add_pack(rig_, pack_of(rig_, {1, 2}), outcome);
  ASSERT_TRUE(rig_.wait([&] { return outcome.has_value(); }));
  ASSERT_EQ(code_of(outcome), "ok");
  EXPECT_EQ(writer.kept_tracks(), 3u);
  EXPECT_EQ(rig_.member().bytes_of(1), 2050u) << "half of the pack";
  EXPECT_EQ(rig_.member().bytes_of(3), kTrackBytes);
  ASSERT_TRUE(rig_.release(2).has_value());
  EXPECT_EQ(writer.kept_tracks(), 3u);
  ASSERT_TRUE(rig_.release(3).has_value());
  EXPECT_EQ(writer.kept_tracks(), 2u);
  rig_.slots().keep_for_packing(2);
  EXPECT_EQ(writer.kept_tracks(), 4u);
}

TEST_F(SlotKeeperTest, SlotsOfReleasedTracksComeBack) {
  for (std::uint64_t round = 0; round < 30; ++round) {
    rig_.fill_tracks(10 * round + 1, 2);
    ASSERT_TRUE(rig_.release(rig_.member().log_disk->current_allocation()).has_value());
    rig_.executor.run_ready();
    ASSERT_EQ(rig_.check_slots(), "ok") << round;
  }
  EXPECT_TRUE(rig_.failures.empty()) << "90 tracks have been taken of a disk for 8";
}

TEST_F(SlotKeeperTest, ATrackIsNotTakenBeforeItsMapIsDurable) {
  bool told = false;
  rig_.fill_tracks(1, 1);
  rig_.executor.run_ready();
  rig_.disk.hold();
  rig_.leave_track();
  // Takes the last track that has a slot; the map for those behind it is held up.
  rig_.array->writer().append(test::record_of(1, 50), test::whole(test::text_of(50, 1)),
                              Urgency::kOrdinary,
                              [&](const Result<LoggedAt>& result) { told = result.has_value(); });
  rig_.executor.run_ready();
  std::uint64_t next = rig_.member().log_disk->current_allocation() + 1;
  while (rig_.place(next).kind == Kind::kSlot) ++next;
  const std::uint64_t track = *rig_.member().tracks.track(next);
  EXPECT_FALSE(rig_.slots().may_write(track));
  rig_.disk.release();
  ASSERT_TRUE(rig_.wait([&] { return told && rig_.slots().idle(); }));
  EXPECT_TRUE(rig_.slots().may_write(track));
}

TEST_F(SlotKeeperTest, AMapThatCouldNotBeWrittenIsWrittenAgain) {
  rig_.fill_tracks(1, 4);
  std::uint64_t allocation = 1;
  for (const auto remains : {FaultyDisk::Remains::kNothing, FaultyDisk::Remains::kSomeSectors,
                             FaultyDisk::Remains::kEverything}) {
    rig_.executor.run_ready();
    const std::uint64_t before = rig_.slotted().generation();
    std::optional<Result<void>> outcome;
    rig_.disk.fail_writes(1, remains);
    add_pack(rig_, pack_of(rig_, {allocation}), outcome);
    rig_.executor.run_ready();
    EXPECT_EQ(code_of(outcome), "none yet");
    EXPECT_EQ(rig_.slotted().generation(), before);
    EXPECT_EQ(rig_.place(allocation).kind, Kind::kSlot);
    ASSERT_TRUE(rig_.wait([&] { return outcome.has_value(); }));
    EXPECT_EQ(code_of(outcome), "ok");
    EXPECT_EQ(rig_.place(allocation++).kind, Kind::kPack);
    EXPECT_EQ(generation_on(rig_.disk, rig_.superblock), rig_.slotted().generation());
    EXPECT_EQ(rig_.check_slots(), "ok");
  }
}

TEST_F(SlotKeeperTest, AMapThatIsLostOrGoesAstrayIsNoticed) {
  rig_.fill_tracks(1, 3);
  std::uint64_t allocation = 1;
  for (const bool lost : {true, false}) {
    rig_.executor.run_ready();
    const std::uint64_t before = rig_.slotted().generation();
    std::optional<Result<void>> outcome;
    if (lost) {
      rig_.disk.drop_next_write();
    } else {
      rig_.disk.misdirect_next_write(rig_.superblock.scratch()->offset);
    }
    add_pack(rig_, pack_of(rig_, {allocation}), outcome);
    rig_.executor.run_ready();
    EXPECT_EQ(code_of(outcome), "none yet") << "it was read back";
    EXPECT_EQ(generation_on(rig_.disk, rig_.superblock), before);
    ASSERT_TRUE(rig_.wait([&] { return outcome.has_value(); }));
    EXPECT_EQ(rig_.place(allocation++).kind, Kind::kPack);
    EXPECT_EQ(read_slot_map(rig_.disk, rig_.superblock)->map, rig_.slotted().map());
  }
}

// Whoever waits for a slot that cannot come is told in the end, and the log can be closed.
TEST_F(SlotKeeperTest, WhenNoMapCanBeWrittenTheWriterMeetsTheError) {
  rig_.disk.fail_reads({rig_.superblock.map_first_block(0) * kBlockBytes,
                        2 * std::uint64_t{map_blocks_for(8)} * kBlockBytes});
  for (std::uint64_t i = 1; i <= 6; ++i) {
    rig_.leave_track();
    rig_.append(i);
  }
  EXPECT_EQ(rig_.durable.size(), 2u) << "those that had slots";
  EXPECT_EQ(rig_.failures, std::vector<std::string>(4, "io"));
  EXPECT_TRUE(rig_.array->writer().failed());
  rig_.close();
  rig_.disk.fail_reads({});
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(rig_.check_records(), "ok");
  EXPECT_EQ(rig_.check_slots(), "ok");
}

// The copy that failed is the one that is written again: the other may be the only whole one.
TEST_F(SlotKeeperTest, APowerCutAfterAFailedCopyLeavesAMap) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SlotRig rig({.seed = seed});
    ASSERT_TRUE(rig.open());
    rig.fill_tracks(1, 2);
    rig.executor.run_ready();
    std::optional<Result<void>> outcome;
    const std::size_t writes = rig.disk.writes().size();
    add_pack(rig, long_pack_of(rig, 1), outcome);
    for (int i = 0; i < 100 && seed % 2 == 0 && rig.disk.writes().size() == writes; ++i) {
      rig.executor.turn();
    }
    rig.disk.fail_writes(1, FaultyDisk::Remains::kSomeSectors);
    rig.executor.run_ready();
    EXPECT_EQ(code_of(outcome), "none yet");
    rig.disk.cut_power_after(0);
    rig.executor.advance(300ms);
    ASSERT_FALSE(rig.disk.powered());
    rig.crash();
    EXPECT_EQ(code_of(outcome), "aborted");
    ASSERT_TRUE(rig.open()) << "seed " << seed;
    EXPECT_EQ(rig.check_slots(), "ok") << "seed " << seed;
  }
}

TEST_F(SlotKeeperTest, APowerCutAfterACopyWasDamagedLeavesAMap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SlotRig rig({.seed = seed});
    ASSERT_TRUE(rig.open());
    rig.fill_tracks(1, 1);
    rig.close();
    rig.disk.flip_bit(rig.superblock.map_first_block(seed % 2) * kBlockBytes + 20, 1);
    ASSERT_TRUE(rig.open());
    std::optional<Result<void>> outcome;
    rig.disk.cut_power_after(0);
    add_pack(rig, long_pack_of(rig, 1), outcome);
    rig.executor.run_ready();
    ASSERT_FALSE(rig.disk.powered());
    rig.crash();
    ASSERT_TRUE(rig.open()) << "seed " << seed;
    EXPECT_EQ(rig.check_slots(), "ok") << "seed " << seed;
  }
}

TEST_F(SlotKeeperTest, TracksOfAPackGiveTheirSlotsUp) {
  rig_.fill_tracks(1, 4);
  rig_.executor.run_ready();
  const std::uint64_t free = rig_.slots().free_tracks(5);
  std::optional<Result<void>> outcome;
  add_pack(rig_, pack_of(rig_, {1, 2, 3}), outcome);
  EXPECT_EQ(rig_.place(1).kind, Kind::kSlot) << "not before the map is durable";
  rig_.executor.run_ready();
  EXPECT_EQ(code_of(outcome), "ok");
  EXPECT_EQ(rig_.place(2), (TrackPlace{Kind::kPack, 1, 1}));
  EXPECT_EQ(rig_.place(4).kind, Kind::kSlot);
  EXPECT_EQ(rig_.slots().free_tracks(5), free + 3 - 1);
  EXPECT_EQ(read_slot_map(rig_.disk, rig_.superblock)->map, rig_.slotted().map());
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(SlotKeeperTest, TracksThatWereFreedMeanwhileAreLeftOutOfAPack) {
  rig_.fill_tracks(1, 4);
  rig_.executor.run_ready();
  PackPlace place = pack_of(rig_, {1, 2, 3});
  const std::uint64_t track_1 = place.tracks[0];
  ASSERT_TRUE(rig_.release(2).has_value());
  std::optional<Result<void>> outcome;
  add_pack(rig_, std::move(place), outcome);
  rig_.executor.run_ready();
  EXPECT_EQ(code_of(outcome), "ok");
  EXPECT_EQ(rig_.slotted().map().place_of(track_1).kind, Kind::kNowhere);
  EXPECT_EQ(rig_.slotted().map().pack(1).tracks[0], PackPlace::kFreed);
  EXPECT_EQ(rig_.place(3).kind, Kind::kPack);
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(SlotKeeperTest, APackWhoseTracksWereAllFreedIsNotNeeded) {
  rig_.fill_tracks(1, 4);
  rig_.executor.run_ready();
  PackPlace place = pack_of(rig_, {1, 2});
  ASSERT_TRUE(rig_.release(3).has_value());
  std::optional<Result<void>> outcome;
  add_pack(rig_, std::move(place), outcome);
  rig_.executor.run_ready();
  EXPECT_EQ(code_of(outcome), "not-found");
  EXPECT_TRUE(rig_.slotted().map().packs().empty());
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(SlotKeeperTest, TracksThatAreFreedWhileTheMapIsWrittenAreGoneFromIt) {
  rig_.fill_tracks(1, 4);
  rig_.executor.run_ready();
  std::optional<Result<void>> outcome;
  const PackPlace place = pack_of(rig_, {1, 2});
  add_pack(rig_, place, outcome);
  ASSERT_FALSE(rig_.slots().idle());
  rig_.slots().released(place.tracks);
  rig_.executor.run_ready();
  EXPECT_EQ(code_of(outcome), "ok");
  EXPECT_TRUE(rig_.slotted().map().packs().empty());
  EXPECT_FALSE(rig_.slotted().has_gone()) << "a map without it followed";
  EXPECT_EQ(read_slot_map(rig_.disk, rig_.superblock)->map, rig_.slotted().map());
}

TEST_F(SlotKeeperTest, APackThatComesAfterTheEndIsNotTaken) {
  rig_.fill_tracks(1, 2);
  rig_.executor.run_ready();
  rig_.slots().stop();
  std::optional<Result<void>> outcome;
  add_pack(rig_, pack_of(rig_, {1}), outcome);
  EXPECT_EQ(code_of(outcome), "aborted");
  EXPECT_EQ(rig_.place(1).kind, Kind::kSlot);
}

TEST_F(SlotKeeperTest, AMapWithoutRoomRefusesAPack) {
  rig_.fill_tracks(1, 2);
  rig_.executor.run_ready();
  PackPlace place = pack_of(rig_, {1});
  place.tracks.resize(2000, PackPlace::kFreed);
  std::optional<Result<void>> outcome;
  add_pack(rig_, std::move(place), outcome);
  EXPECT_EQ(code_of(outcome), "limit");
  EXPECT_EQ(rig_.place(1).kind, Kind::kSlot);
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.check_slots(), "ok");
}

// Whatever a sequence of changes has come to when the power goes: what was durable is there, and
// every slot is free or needed.
TEST(SlotKeeperCrashTest, EveryWriteMayBeTheLast) {
  std::uint64_t cuts = 0;
  for (std::uint64_t writes = 0;; ++writes, ++cuts) {
    // So many that the map takes more than a sector, and can be torn.
    SlotRig rig({.seed = writes + 1, .slots = 56});
    ASSERT_TRUE(rig.open());
    rig.start_packing();
    rig.fill_tracks(200, 40);
    rig.disk.cut_power_after(writes);
    rig.fill_tracks(1, 4);
    if (rig.disk.powered()) static_cast<void>(rig.pack().has_value());
    if (rig.disk.powered()) rig.fill_tracks(11, 3);
    if (rig.disk.powered()) static_cast<void>(rig.release(15).has_value());
    if (rig.disk.powered()) rig.fill_tracks(21, 1);
    if (rig.disk.powered()) static_cast<void>(rig.pack().has_value());
    if (rig.disk.powered()) static_cast<void>(rig.release(44).has_value());
    if (rig.disk.powered()) rig.fill_tracks(31, 2);
    const bool came_through = rig.disk.powered();
    rig.crash();
    ASSERT_TRUE(rig.open()) << "after write " << writes;
    ASSERT_EQ(rig.check_records(), "ok") << "after write " << writes;
    ASSERT_EQ(rig.check_slots(), "ok") << "after write " << writes;
    // And it can go on.
    rig.append(100);
    ASSERT_EQ(rig.durable.count(100), 1u) << "after write " << writes;
    if (came_through) break;
  }
  EXPECT_GT(cuts, 50u);
}

}  // namespace
}  // namespace mariner::logging
