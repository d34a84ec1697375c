// A full log and a disk that fails or hangs in the same moment: what was told to have failed is
// never found again, wherever it stands.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "logging/live_tracks.h"
#include "logging/log_writer.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::FaultyDisk;
using test::record_of;
using Remains = FaultyDisk::Remains;

constexpr std::uint32_t kLargest =
    kRecordPayloadBlocksMax;         // one in a track, and half of it is left
constexpr std::uint64_t kLast = 10;  // of two disks with six tracks and two in reserve

// A log on two disks with room for one more ordinary record.
class FullLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    for (std::uint64_t i = 1; i < kLast; ++i) rig_.append_now(record_of(1, i, kLargest));
    ASSERT_EQ(rig_.outcomes.size(), kLast - 1);
    for (const auto& outcome : rig_.outcomes) ASSERT_TRUE(outcome.result.has_value());
    ASSERT_EQ(rig_.writer().free_tracks(), 3u);
    rig_.outcomes.clear();
  }

  // What the tracks of all disks hold of the last record, for who reads them while the log goes on.
  std::size_t found_meanwhile() {
    std::size_t found = 0;
    for (const LiveTracks& live : live_tracks(*rig_.array)) {
      for (std::size_t track = 0; track < live.tracks.size(); ++track) {
        const Result<CompleteTrack> read = read_live_track(live, track);
        EXPECT_TRUE(read.has_value());
        if (!read) continue;
        for (const auto& [record, location] : read->records) {
          found += record.volume.value == 1 && record.sequence.value == kLast ? 1 : 0;
        }
      }
    }
    return found;
  }

  // The disk that has something in flight.
  FaultyDisk& busy_disk() {
    for (const auto& disk : rig_.disks) {
      if (disk->in_flight() > 0) return *disk;
    }
    ADD_FAILURE() << "no disk is busy";
    return *rig_.disks[0];
  }

  ArrayRig rig_{{.disks = 2, .tracks = 6, .writer = {.reserve_tracks = 2, .t_fail = 1s}}};
};

const char* const kAllBefore = "|1 2 3 4 5 6 7 8 9";

TEST_F(FullLogTest, WhatAFailedDiskHoldsIsWithdrawnWhenNoOtherHasRoom) {
  for (const auto& disk : rig_.disks) disk->fail_writes(1, Remains::kEverything);
  rig_.append_now(record_of(1, kLast, kLargest));
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.outcomes_text(), "10:no-space");
  EXPECT_FALSE(rig_.writer().failed());
  EXPECT_EQ(rig_.writer().withdrawn().size(), 1u);
  EXPECT_EQ(rig_.writer().ordinal_frontier(), kLast + 2) << "both are settled";
  EXPECT_EQ(found_meanwhile(), 0u);
  EXPECT_EQ(rig_.reopened(), kAllBefore);
  EXPECT_EQ(rig_.recovered.next_ordinal, kLast + 2) << "its ordinal is never given again";
  EXPECT_EQ(found_meanwhile(), 0u);
  EXPECT_EQ(rig_.reopened(), kAllBefore) << "nor does a second start find it";
}

TEST_F(FullLogTest, WhatAHangingDiskWritesAfterAllIsWithdrawn) {
  for (const auto& disk : rig_.disks) disk->hold();
  rig_.append_now(record_of(1, kLast, kLargest));
  FaultyDisk& hangs = busy_disk();
  for (const auto& disk : rig_.disks) {
    if (disk.get() != &hangs) disk->release();
  }
  rig_.executor.advance(3s);
  EXPECT_EQ(rig_.outcomes_text(), "") << "its disk may yet have room for what waits";
  hangs.release();
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.outcomes_text(), "10:no-space");
  // It stands there whole, and its disk goes on behind it.
  rig_.append_now(record_of(1, kLast + 1, 1), Urgency::kEssential);
  rig_.append_now(record_of(1, kLast + 2, 1), Urgency::kEssential);
  EXPECT_EQ(found_meanwhile(), 0u);
  EXPECT_EQ(rig_.reopened(), std::string(kAllBefore) + " 11 12");
  EXPECT_EQ(found_meanwhile(), 0u);
}

TEST_F(FullLogTest, NobodyIsToldBeforeTheWithdrawalIsDurable) {
  for (const auto& disk : rig_.disks) disk->hold();
  rig_.append_now(record_of(1, kLast, kLargest));
  FaultyDisk& fails = busy_disk();
  fails.fail_writes(1, Remains::kEverything);
  fails.release();
  fails.hold();
  rig_.executor.run_ready();
  ASSERT_EQ(rig_.writer().state_of(0), LogWriter::DiskState::kGood);
  ASSERT_EQ(busy_disk().in_flight(), 1u) << "the withdrawal is on its way";
  ASSERT_EQ(rig_.outcomes_text(), "");
  ASSERT_EQ(rig_.writer().withdrawn().size(), 0u);
  EXPECT_EQ(rig_.writer().ordinal_frontier(), kLast) << "no batch may say that it is settled";
  rig_.crash();
  ASSERT_TRUE(rig_.open());
  EXPECT_TRUE(rig_.outcomes.empty());
  // Either is right, as long as every start says the same.
  const std::size_t found = rig_.visited.size();
  EXPECT_EQ(rig_.reopened(), std::string(kAllBefore) + (found == kLast ? " 10" : ""));
}

TEST_F(FullLogTest, WhatOnlyWaitedForADiskNeedsNoWithdrawal) {
  for (const auto& disk : rig_.disks) {
    disk->hold();
    disk->fail_writes(1, Remains::kEverything);
  }
  rig_.append_now(record_of(1, kLast, kLargest));
  rig_.append_now(record_of(1, kLast + 1, kLargest / 2));
  rig_.append_now(record_of(1, kLast + 2, kLargest / 2));
  ASSERT_EQ(rig_.disks[0]->in_flight() + rig_.disks[1]->in_flight(), 2u);
  for (const auto& disk : rig_.disks) disk->release();
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.outcomes_text(), "12:no-space 10:no-space 11:no-space");
  EXPECT_EQ(rig_.writer().withdrawn().size(), 2u) << "of those that were in flight";
  EXPECT_EQ(rig_.writer().ordinal_frontier(), kLast + 5) << "all are settled, the third one, too";
  EXPECT_EQ(rig_.reopened(), kAllBefore);
}

TEST_F(FullLogTest, WhereNothingCanSayThatItFailedNothingIsWrittenAnyMore) {
  // The reserve too, and what is left of each track.
  for (std::uint64_t i = 100; i < 103; ++i) {
    rig_.append_now(record_of(2, i, kLargest), Urgency::kEssential);
  }
  ASSERT_EQ(rig_.writer().free_tracks(), 0u);
  for (const std::uint32_t blocks : {kLargest / 2, kLargest / 4, kLargest / 8}) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      rig_.append_now(record_of(2, 1000 * blocks + i, blocks), Urgency::kEssential);
    }
  }
  rig_.outcomes.clear();
  for (const auto& disk : rig_.disks) disk->fail_writes(1, Remains::kEverything);
  rig_.append_now(record_of(2, 200'000'000, 1), Urgency::kEssential);
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.outcomes_text(), "200000000:no-space");
  EXPECT_TRUE(rig_.writer().failed());
  rig_.append_now(record_of(2, 200'000'001, 1), Urgency::kEssential);
  EXPECT_EQ(rig_.outcomes_text(), "200000000:no-space 200000001:io");
  EXPECT_NE(rig_.outcomes.back().result.error().message.find("cannot say that a write has failed"),
            std::string::npos);
}

TEST(FullLog, OrdinaryRecordsLeaveRoomForTheBeforeImagesThatTheyBringAbout) {
  ArrayRig rig{{.disks = 2, .tracks = 8, .writer = {.reserve_tracks = 2, .t_fail = 1s}}};
  ASSERT_TRUE(rig.open());
  constexpr std::uint64_t kInATrack = 6 * LogWriter::kSetsAsideInPieces;
  int written = 0;
  int refused = 0;
  const auto write = [&](std::uint64_t sequence, std::uint64_t sets_aside) {
    rig.writer().append(
        record_of(1, sequence, kLargest), test::whole(test::payload_of(sequence, kLargest)),
        Urgency::kOrdinary, [&](const Result<LoggedAt>& logged) { ++(logged ? written : refused); },
        sets_aside);
    rig.executor.run_until_idle();
  };
  write(1, kInATrack);
  EXPECT_EQ(rig.writer().set_aside_bytes(), kInATrack);
  EXPECT_EQ(rig.writer().kept_tracks(), 4u);
  std::uint64_t next = 2;
  while (refused == 0) write(next++, 0);
  EXPECT_EQ(rig.writer().free_tracks(), 4u);
  // What it would have brought about does not come.
  write(next++, kInATrack);
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(rig.writer().set_aside_bytes(), kInATrack);
  // A before-image has it.
  Record before = record_of(2, 0, kLargest);
  before.type = RecordType::kBeforeImage;
  rig.append_now(before, Urgency::kBeforeImage);
  EXPECT_TRUE(rig.outcomes.back().result.has_value());
  // One that waits goes on when an image has got on, without being told.
  rig.writer().set_full_gate([] { return true; });
  EXPECT_FALSE(rig.writer().waits_for_room());
  write(next++, 0);
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(rig.writer().waits_for_room());
  const int before_it = written;
  rig.writer().give_back(kInATrack);
  rig.executor.run_until_idle();
  EXPECT_EQ(written, before_it + 1);
  EXPECT_FALSE(rig.writer().waits_for_room());
  EXPECT_EQ(rig.writer().kept_tracks(), 2u);
  rig.writer().set_full_gate(nullptr);
}

TEST(FullLog, AllThatIsSetAsideIsThere) {
  ArrayRig rig{{.tracks = 31, .writer = {.reserve_tracks = 2, .t_fail = 1s}}};
  ASSERT_TRUE(rig.open());
  constexpr std::uint32_t kBlocks = 256;  // seven in a track, and an eighth of it is left
  constexpr std::uint64_t kRoom = (kBlocks + 1) * kBlockBytes;
  static_assert(kRoom == LogWriter::kSetsAsideInPieces);
  std::uint64_t sequence = 0;
  int refused = 0;
  while (refused == 0) {
    ++sequence;
    rig.writer().append(
        record_of(1, sequence, kBlocks), test::whole(test::payload_of(sequence, kBlocks)),
        Urgency::kOrdinary, [&](const Result<LoggedAt>& logged) { refused += logged ? 0 : 1; },
        kRoom);
    rig.executor.run_until_idle();
  }
  // No image has got on yet, and each block of all that was written needs a before-image.
  Record before = record_of(2, 0, kBlocks);
  before.type = RecordType::kBeforeImage;
  for (std::uint64_t bytes = rig.writer().set_aside_bytes(); bytes > 0; bytes -= kRoom) {
    rig.append_now(before, Urgency::kBeforeImage);
    ASSERT_TRUE(rig.outcomes.back().result.has_value()) << bytes << " bytes are still to come";
  }
}

TEST_F(FullLogTest, ARecordThatWouldSetAsideMoreThanThereIsWaitsForHalfOfTheLog) {
  const std::uint64_t all = rig_.writer().limit_bytes();
  bool more = true;
  rig_.writer().set_full_gate([&] { return more; });
  std::optional<bool> logged;
  rig_.writer().append(
      record_of(1, kLast, 1), test::whole(test::payload_of(kLast, 1)), Urgency::kOrdinary,
      [&](const Result<LoggedAt>& result) { logged = result.has_value(); }, 10 * all);
  rig_.executor.run_until_idle();
  EXPECT_FALSE(logged.has_value());
  EXPECT_EQ(rig_.writer().kept_tracks(), 6u) << "of twelve";
  EXPECT_EQ(rig_.writer().kept_tracks_at_rest(), 6u);
  rig_.writer().set_aside(all);
  EXPECT_EQ(rig_.writer().kept_tracks(), 6u + 14u)
      << "what is logged already has all of its own, and the ends of tracks";
  EXPECT_EQ(rig_.writer().kept_tracks_at_rest(), 6u);
  rig_.writer().give_back(all);
  more = false;
  rig_.writer().retry();
  rig_.executor.run_until_idle();
  EXPECT_EQ(logged, false);
  EXPECT_EQ(rig_.writer().kept_tracks(), 2u);
  rig_.writer().set_full_gate(nullptr);
}

TEST(Withdrawn, AValueThatSharesUntilItIsChanged) {
  Withdrawn mine;
  EXPECT_EQ(mine.size(), 0u);
  EXPECT_FALSE(mine.contains(7));
  mine.add(7);
  mine.add(9);
  const Withdrawn theirs = mine;
  mine.add(11);
  mine.forget_below(9);
  EXPECT_EQ(mine.size(), 2u);
  EXPECT_FALSE(mine.contains(7));
  EXPECT_TRUE(mine.contains(9));
  EXPECT_TRUE(mine.contains(11));
  EXPECT_TRUE(theirs.contains(7));
  EXPECT_FALSE(theirs.contains(11));
  Record withdrawal;
  withdrawal.type = RecordType::kWithdrawal;
  withdrawal.target_sequence.value = 20;
  mine.take(withdrawal);
  mine.take(record_of(1, 21));
  EXPECT_TRUE(mine.contains(20));
  EXPECT_FALSE(mine.contains(21));
}

}  // namespace
}  // namespace mariner::logging
