#include "logging/oldest_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::FaultyDisk;
using test::record_of;
using Remains = FaultyDisk::Remains;

std::optional<OldestRecords> oldest_of(const LogArray& array, std::uint64_t from) {
  auto found = read_oldest_records(live_tracks(array), from);
  if (!found) {
    ADD_FAILURE() << to_string(found.error());
    return std::nullopt;
  }
  return *std::move(found);
}

// "disk 1 below 5: 3 4"
std::string text(const std::optional<OldestRecords>& oldest) {
  if (!oldest) return "none";
  std::string out = "disk " + std::to_string(oldest->disk) + " below " +
                    std::to_string(oldest->end_ordinal) + ":";
  for (const auto& [record, location] : oldest->records) {
    out += " " + std::to_string(record.ordinal);
  }
  return out;
}

class OldestRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  void leave(std::uint8_t disk) { rig_.member(disk).log_disk->leave_track(0ns); }
  void release(std::uint8_t disk) {
    LogArray::Member& member = rig_.member(disk);
    member.recycler->release(member.tracks.oldest() + 1,
                             [](const Result<void>& result) { EXPECT_TRUE(result.has_value()); });
    rig_.executor.run_ready();
  }
  std::string oldest(std::uint64_t from = 1) { return text(oldest_of(*rig_.array, from)); }

  ArrayRig rig_{{.disks = 1}};
};

TEST_F(OldestRecordsTest, NoneAsLongAsNoTrackIsComplete) {
  EXPECT_EQ(oldest(), "none");
  rig_.append_now(record_of(1, 1));
  EXPECT_EQ(oldest(), "none");
}

TEST_F(OldestRecordsTest, TheRecordsOfTheOldestTrack) {
  for (std::uint64_t i = 1; i <= 3; ++i) rig_.append_now(record_of(1, i));
  leave(0);
  for (std::uint64_t i = 4; i <= 5; ++i) rig_.append_now(record_of(1, i));
  EXPECT_EQ(oldest(), "disk 0 below 4: 1 2 3");
  EXPECT_EQ(oldest(3), "disk 0 below 4: 3") << "the others were given up before";
  EXPECT_EQ(oldest(4), "disk 0 below 4:");
  EXPECT_EQ(oldest(5), "disk 0 below 5:") << "nothing of it is above what was given up";
  release(0);
  EXPECT_EQ(oldest(4), "none");
}

TEST_F(OldestRecordsTest, TrackAfterTrack) {
  for (std::uint64_t i = 1; i <= 6; ++i) {
    rig_.append_now(record_of(1, i));
    if (i % 2 == 0) leave(0);
  }
  rig_.append_now(record_of(1, 7));
  std::vector<LiveTracks> live = live_tracks(*rig_.array);
  const auto all = [](OldestRecordsReader reader) {
    std::string out;
    for (auto next = reader.next(); next && *next; next = reader.next()) out += text(*next) + "; ";
    return out;
  };
  EXPECT_EQ(all(OldestRecordsReader(live, 1)),
            "disk 0 below 3: 1 2; disk 0 below 5: 3 4; disk 0 below 7: 5 6; ");
  EXPECT_EQ(all(OldestRecordsReader(live, 4)),
            "disk 0 below 4:; disk 0 below 5: 4; disk 0 below 7: 5 6; ");
  live[0].tracks.erase(live[0].tracks.begin() + 1);
  EXPECT_EQ(all(OldestRecordsReader(live, 1)),
            "disk 0 below 3: 1 2; disk 0 below 3:; disk 0 below 7: 5 6; ")
      << "a hole has none";
}

// The next track has been taken, but nothing has arrived there yet.
TEST_F(OldestRecordsTest, ATrackIsCompleteAsSoonAsTheNextIsTaken) {
  rig_.append_now(record_of(1, 1));
  rig_.append_now(record_of(1, 2));
  leave(0);
  rig_.disks[0]->hold();
  rig_.append_now(record_of(1, 3));
  ASSERT_EQ(rig_.member(0).log_disk->current_allocation(), 2u);
  EXPECT_EQ(oldest(), "disk 0 below 3: 1 2");
  // Nor does it, and the disk waits for another batch.
  rig_.disks[0]->fail_writes(2, Remains::kNothing);
  rig_.disks[0]->release();
  rig_.executor.run_ready();
  EXPECT_EQ(oldest(), "disk 0 below 3: 1 2");
}

TEST_F(OldestRecordsTest, TheRecordsOfAnUnusedTrackAreNone) {
  rig_.append_now(record_of(1, 1));
  rig_.disks[0]->fail_writes(1, Remains::kNothing);
  leave(0);
  rig_.append_now(record_of(1, 2));  // track 1 fails and stays empty
  leave(0);
  rig_.append_now(record_of(1, 3));
  EXPECT_EQ(oldest(), "disk 0 below 2: 1");
  release(0);
  EXPECT_EQ(oldest(2), "disk 0 below 2:") << "can be freed for nothing";
  release(0);
  EXPECT_EQ(oldest(2), "disk 0 below 3: 2");
}

TEST_F(OldestRecordsTest, AFinishedDisksLastTrackIsComplete) {
  for (std::uint64_t i = 1; i <= 3; ++i) rig_.append_now(record_of(1, i));
  rig_.member(0).log_disk->finish();
  EXPECT_EQ(oldest(), "disk 0 below 4: 1 2 3");
  release(0);
  EXPECT_EQ(oldest(), "none");
}

TEST_F(OldestRecordsTest, AHoleIsFreedForNothing) {
  rig_.append_now(record_of(1, 1));
  leave(0);
  rig_.append_now(record_of(1, 2));
  std::vector<LiveTracks> live = live_tracks(*rig_.array);
  live[0].tracks.erase(live[0].tracks.begin());
  const auto found = read_oldest_records(live, 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(text(*found), "disk 0 below 1:");
}

TEST_F(OldestRecordsTest, AnErrorOfTheDiskIsAnError) {
  rig_.append_now(record_of(1, 1));
  leave(0);
  rig_.append_now(record_of(1, 2));
  rig_.disks[0]->fail_reads({rig_.outcomes[0].result->batch_sector * kBlockBytes, kBlockBytes});
  const auto found = read_oldest_records(live_tracks(*rig_.array), 1);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kIo);
}

// A track of disk 0 with 1 and 4, then 5; one of disk 1 with 2 and 3, then 6.
TEST(OldestRecords, TheTrackWhoseRecordsEndFirstIsTheCandidate) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  const auto busy = [&](std::uint8_t disk, std::uint64_t sequence) {
    rig.disks[disk]->hold();
    rig.append_now(record_of(1, sequence));
  };
  busy(0, 1);
  rig.append_now(record_of(1, 2));
  rig.append_now(record_of(1, 3));
  ASSERT_EQ(rig.outcomes_text(), "2:ok@1 3:ok@1");
  EXPECT_EQ(text(oldest_of(*rig.array, 1)), "none");
  rig.disks[0]->release();
  rig.executor.run_ready();
  rig.member(1).log_disk->leave_track(0ns);
  rig.append_now(record_of(1, 4));
  ASSERT_EQ(rig.outcomes.back().result->disk, 0);
  rig.member(0).log_disk->leave_track(0ns);
  busy(0, 5);
  rig.append_now(record_of(1, 6));
  rig.disks[0]->release();
  rig.executor.run_ready();
  ASSERT_EQ(rig.outcomes_text(), "2:ok@1 3:ok@1 1:ok@0 4:ok@0 6:ok@1 5:ok@0");
  // Disk 1's first track ends with 3; of disk 0 only 1 lies below.
  EXPECT_EQ(text(oldest_of(*rig.array, 1)), "disk 1 below 4: 1 2 3");
  EXPECT_EQ(text(oldest_of(*rig.array, 3)), "disk 1 below 4: 3");
  rig.member(1).recycler->release(2, [](const Result<void>&) {});
  rig.executor.run_ready();
  EXPECT_EQ(text(oldest_of(*rig.array, 4)), "disk 0 below 5: 4");
}

// Where each acknowledged record stands, by its ordinal, which is its sequence number here.
using Places = std::map<std::uint64_t, LogLocation>;

Places places_of(const ArrayRig& rig) {
  Places out;
  for (const auto& outcome : rig.outcomes) {
    if (outcome.result) out[outcome.record.sequence.value] = *outcome.result;
  }
  return out;
}

// One above the highest record of a disk's oldest track, if that is complete.
std::optional<std::uint64_t> end_of_oldest(const LogArray::Member& member, const Places& places,
                                           std::uint64_t from) {
  if (member.tracks.oldest() >= member.log_disk->current_allocation()) return std::nullopt;
  std::uint64_t end = from;
  const auto track = member.tracks.track(member.tracks.oldest());
  if (!track) return end;
  const SectorRange sectors = member.superblock.track(*track);
  for (const auto& [ordinal, at] : places) {
    if (at.disk == member.superblock.disk && at.batch_sector >= sectors.first &&
        at.batch_sector < sectors.end()) {
      end = std::max(end, ordinal + 1);
    }
  }
  return end;
}

// A random load with failing and hanging disks; in between the oldest records are given up.
void give_up(std::uint64_t seed, bool rotating) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const std::size_t disk_count = 2 + below(2);
  ArrayRig rig({.seed = seed,
                .disks = disk_count,
                .tracks = 30,
                .delay_max = rotating ? 6ms : 300us,
                .rotating = rotating,
                .writer = {.t_fail = 50ms}});
  ASSERT_TRUE(rig.open());
  std::uint64_t sequence = 0;
  std::uint64_t from = 1;
  std::size_t freed = 0;
  bool finished = false;
  for (int step = 0; step < 600; ++step) {
    FaultyDisk& any = *rig.disks[below(disk_count)];
    switch (below(16)) {
      case 0: rig.writer().leave_tracks(); break;
      case 1: any.fail_writes(1, static_cast<Remains>(below(3))); break;
      case 2:
        if (below(4) == 0) any.hold();
        break;
      case 3:
        for (const auto& disk : rig.disks) disk->release();
        break;
      case 4:
        if (below(60) == 0 && !finished) {
          finished = true;
          rig.array->drain(static_cast<std::uint8_t>(below(disk_count)),
                           [](const Result<void>&) {});
        }
        break;
      case 5:
      case 6: {
        const std::uint64_t frontier = rig.writer().ordinal_frontier();
        const auto oldest = oldest_of(*rig.array, from);
        if (::testing::Test::HasFailure()) return;
        const Places places = places_of(rig);
        std::optional<std::uint64_t> lowest;
        for (const auto& member : rig.array->members()) {
          const auto end = end_of_oldest(*member, places, from);
          if (end && (!lowest || *end < *lowest)) lowest = end;
        }
        ASSERT_EQ(oldest.has_value(), lowest.has_value());
        if (!oldest || oldest->end_ordinal > frontier) break;
        // A straggler's first try, or a second one, may stand in a track and be the last there.
        ASSERT_GE(oldest->end_ordinal, *lowest);
        std::uint64_t expected = from;
        for (const auto& [record, location] : oldest->records) {
          ASSERT_EQ(record.ordinal, expected) << "nothing is missing, and nothing comes twice";
          ASSERT_EQ(record.sequence.value, expected);
          ASSERT_TRUE(rig.readable(record, location));
          ++expected;
        }
        ASSERT_EQ(expected, std::max(from, oldest->end_ordinal));
        LogArray::Member& member = rig.member(oldest->disk);
        ASSERT_LE(*end_of_oldest(member, places, from), oldest->end_ordinal) << "it can be freed";
        if (!member.recycler->idle()) break;
        from = oldest->end_ordinal;
        ++freed;
        member.recycler->release(member.tracks.oldest() + 1, [](const Result<void>&) {});
        break;
      }
      case 7: rig.executor.advance(std::chrono::milliseconds(below(100))); break;
      default:
        if (rig.writer().short_of_tracks()) break;
        rig.append(record_of(1, ++sequence, static_cast<std::uint32_t>(1 + below(4))));
        rig.executor.advance(std::chrono::microseconds(below(400)));
        break;
    }
    if (rig.writer().failed()) return;
  }
  EXPECT_GT(freed, 3u);
}

TEST(OldestRecords, NothingBelowTheEndIsEverMissing) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    give_up(seed, seed % 3 == 0);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mariner::logging
