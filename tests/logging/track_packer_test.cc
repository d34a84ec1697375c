#include "logging/track_packer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "logging/taken_tracks.h"
#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::kTrackBytes;
using test::SlotRig;
using Kind = TrackPlace::Kind;

class TrackPackerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  std::string packed(std::uint64_t count) { return packed(rig_, count); }
  static std::string packed(SlotRig& rig, std::uint64_t count) {
    std::string text;
    for (std::uint64_t a = rig.member().tracks.oldest(); count-- > 0; ++a) {
      const Kind kind = rig.place(a).kind;
      text += kind == Kind::kPack ? "p" : kind == Kind::kSlot ? "s" : "-";
    }
    return text;
  }
  [[nodiscard]] std::string code_of(const Result<void>& result) const {
    return result ? "ok" : std::string(error_code_name(result.error().code));
  }
  SlotRig rig_;
};

TEST_F(TrackPackerTest, EverythingThatIsCompleteIsPackedAndReadsAsBefore) {
  rig_.fill_tracks(1, 4);
  rig_.append(6, 0);
  rig_.start_packing();
  const std::uint64_t used = rig_.array->writer().used_bytes();
  const std::uint64_t history = rig_.array->writer().history_bytes();
  EXPECT_EQ(code_of(rig_.pack()), "ok");
  EXPECT_EQ(packed(5), "pppps");
  EXPECT_EQ(rig_.check_slots(), "ok");
  for (const auto& [sequence, record] : rig_.durable) EXPECT_TRUE(rig_.readable(sequence));
  EXPECT_EQ(rig_.array->writer().used_bytes(), used - 3 * kTrackBytes) << "four became one";
  EXPECT_EQ(rig_.array->writer().history_bytes(), history);
  std::size_t tracks = 0;
  for (const PackingReport& report : rig_.reports) {
    EXPECT_EQ(report.trouble, "");
    EXPECT_LT(report.packed_bytes * 4, report.used_bytes);
    tracks += report.tracks;
  }
  EXPECT_EQ(tracks, 4u);
  // What is read asynchronously comes from the packs, too.
  Payload to = Payload::allocate(16 * kBlockBytes);
  std::optional<Result<void>> outcome;
  rig_.array->reader().read(
      {rig_.durable.at(2).location, VolumeId{1}, SequenceNumber{2}, 0, to.bytes()},
      [&](Result<void> result) { outcome = std::move(result); });
  ASSERT_TRUE(rig_.wait([&] { return outcome.has_value(); }));
  ASSERT_TRUE(outcome->has_value());
  EXPECT_TRUE(std::ranges::equal(to.bytes(), test::text_of(2, 16).bytes()));
}

TEST_F(TrackPackerTest, RecoveryFindsThePackedRecordsWhereTheyWere) {
  rig_.fill_tracks(1, 4);
  rig_.start_packing();
  ASSERT_EQ(code_of(rig_.pack()), "ok");
  const auto places = packed(5);
  rig_.crash();
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(packed(5), places);
  EXPECT_EQ(rig_.visited.size(), 5u);
  EXPECT_EQ(rig_.check_records(), "ok");
  EXPECT_EQ(rig_.check_slots(), "ok");
}

// A log holds several times as much as its disk.
TEST_F(TrackPackerTest, TheLogHoldsMoreTracksThanTheDiskHasSlots) {
  rig_.start_packing();
  for (std::uint64_t round = 0; round < 15; ++round) {
    rig_.fill_tracks(10 * round + 1, 2);
    ASSERT_EQ(code_of(rig_.pack()), "ok");
    ASSERT_EQ(rig_.check_slots(), "ok") << round;
  }
  EXPECT_TRUE(rig_.failures.empty());
  EXPECT_EQ(rig_.durable.size(), 45u);
  rig_.crash();
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(rig_.check_records(), "ok");
  EXPECT_EQ(rig_.check_slots(), "ok");
  ASSERT_EQ(code_of(rig_.release(40)), "ok");
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.check_slots(), "ok");
  rig_.crash();
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(rig_.check_records(), "ok");
  EXPECT_EQ(rig_.check_slots(), "ok");
}

// Without a track number there is no room, whatever the slots say; and what is freed comes round.
TEST_F(TrackPackerTest, TheNumbersOfTracksComeRound) {
  rig_.start_packing();
  for (std::uint64_t round = 0; round < 50; ++round) {
    rig_.fill_tracks(10 * round + 1, 2);
    ASSERT_TRUE(rig_.failures.empty()) << round;
    ASSERT_EQ(code_of(rig_.pack()), "ok");
    const std::uint64_t current = rig_.member().log_disk->current_allocation();
    if (current > rig_.member().tracks.oldest() + 50) {
      ASSERT_EQ(code_of(rig_.release(current - 50)), "ok");
    }
    rig_.executor.run_ready();
    ASSERT_EQ(rig_.check_slots(), "ok") << round;
    if (round % 7 != 6) continue;
    rig_.crash();
    ASSERT_TRUE(rig_.open());
    ASSERT_EQ(rig_.check_records(), "ok") << round;
    ASSERT_EQ(rig_.check_slots(), "ok") << round;
    rig_.start_packing();
  }
}

// Else none would be there when it is needed most.
TEST_F(TrackPackerTest, OrdinaryRecordsLeaveRoomForAPack) {
  rig_.start_packing({.enabled = true});
  rig_.fill_tracks(1, 9, false);
  EXPECT_EQ(rig_.durable.size(), 5u) << "of eight, beside the reserve";
  EXPECT_EQ(rig_.failures, std::vector<std::string>(5, "no-space"));
  rig_.array->set_packing({.enabled = false});
  rig_.append(20, 64, false);
  EXPECT_EQ(rig_.durable.size(), 6u);
}

// A log that was full of what does not compress stood still for half a minute.
TEST_F(TrackPackerTest, RecordsThatWaitForWhatAPackTookGoOnWhenNothingComesOfIt) {
  rig_.fill_tracks(1, 4, false);
  rig_.start_packing();
  rig_.array->writer().set_full_gate([] { return true; });
  ASSERT_TRUE(rig_.slotted().take_extent(1));  // as if for a pack that is being built
  bool durable = false;
  rig_.leave_track();
  rig_.array->writer().append(
      test::record_of(1, 20, 64), test::whole(test::noise_of(20, 64)), Urgency::kOrdinary,
      [&](const Result<LoggedAt>& logged) { durable = logged.has_value(); });
  for (int i = 0; i < 100; ++i) {
    rig_.executor.run_ready();
    rig_.executor.advance(1ms);
  }
  ASSERT_FALSE(durable) << "it has no room";
  rig_.array->pack_now([](const Result<void>&) {});
  EXPECT_TRUE(rig_.wait([&] { return durable; }));
}

TEST_F(TrackPackerTest, WhatIsAboutToBeGivenUpIsNotPacked) {
  SlotRig rig({.slots = 64});
  ASSERT_TRUE(rig.open());
  rig.fill_tracks(1, 57);
  EXPECT_EQ(rig.failures.size(), 0u);
  rig.start_packing({.enabled = true, .cold_after = 1h});
  ASSERT_TRUE(rig.wait([&] { return !rig.reports.empty(); }));
  for (std::uint64_t a = 1; a <= 4; ++a) EXPECT_EQ(rig.place(a).kind, Kind::kSlot) << a;
  EXPECT_EQ(rig.place(5).kind, Kind::kPack);
}

TEST_F(TrackPackerTest, WhatCannotBeCompressedStays) {
  rig_.fill_tracks(1, 1, false);
  rig_.fill_tracks(3, 1);
  rig_.start_packing();
  EXPECT_EQ(code_of(rig_.pack()), "ok");
  EXPECT_EQ(packed(4), "ssps");
}

TEST_F(TrackPackerTest, ADamagedTrackStaysAndTheOthersDoNot) {
  rig_.leave_track();
  for (std::uint64_t i = 1; i <= 3; ++i) rig_.append(i);
  rig_.fill_tracks(4, 2);
  const std::uint64_t in_track = rig_.durable.at(2).location.batch_sector * kBlockBytes -
                                 rig_.offset_of(*rig_.member().tracks.track(1));
  rig_.disk.flip_bit(kReservedBytes + rig_.place(1).number * kTrackBytes + in_track + 70, 0);
  rig_.start_packing();
  EXPECT_EQ(code_of(rig_.pack()), "ok");
  EXPECT_EQ(packed(4), "spps");
  EXPECT_TRUE(rig_.readable(1) && rig_.readable(3) && rig_.readable(4));
  EXPECT_FALSE(rig_.readable(2));
}

// By itself it packs what is cold, and only then.
TEST_F(TrackPackerTest, TracksThatAreTooYoungStayUntilTheyAreOld) {
  SlotRig rig({.slots = 16});
  ASSERT_TRUE(rig.open());
  const std::uint64_t now = rig.executor.wall_time().ns;
  rig.leave_track();
  Record record = test::record_of(1, 1, 16);
  record.time = {now};
  rig.array->writer().append(record, test::whole(test::text_of(1, 16)), Urgency::kOrdinary,
                             [](const Result<LoggedAt>& at) { EXPECT_TRUE(at.has_value()); });
  rig.executor.run_ready();
  rig.leave_track();
  rig.append(2);
  rig.start_packing({.enabled = true, .cold_after = 60s});
  for (int second = 0; second < 55; ++second) {
    ASSERT_TRUE(rig.wait([&] { return rig.array->idle(); }));
    ASSERT_EQ(packed(rig, 1), "s") << second;
    rig.executor.advance(1s);
  }
  rig.executor.advance(10s);
  EXPECT_TRUE(rig.wait([&] { return packed(rig, 1) == "p"; }));
  EXPECT_EQ(packed(rig, 2), "ps");
}

TEST_F(TrackPackerTest, UnderPressureTheYoungArePackedToo) {
  rig_.start_packing({.enabled = true, .cold_after = 24h * 365 * 100});
  rig_.fill_tracks(1, 2);
  rig_.executor.advance(5s);
  EXPECT_EQ(packed(3), "sss") << "more than half of the log is free";
  for (std::uint64_t i = 10; i <= 30; ++i) {
    rig_.leave_track();
    rig_.append(i);
    rig_.executor.advance(2s);
    ASSERT_TRUE(rig_.wait([&] { return rig_.member().packer->idle() && rig_.slots().idle(); }));
  }
  EXPECT_TRUE(rig_.failures.empty());
  EXPECT_GE(rig_.reports.size(), 15u);
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(TrackPackerTest, WithoutRoomToWorkItSaysSoAndGoesOnWhenThereIsSome) {
  rig_.fill_tracks(1, 5);
  rig_.start_packing();
  for (std::uint64_t slot = 0; slot < 8; ++slot) static_cast<void>(rig_.slotted().hold(slot));
  EXPECT_EQ(code_of(rig_.pack()), "no-space");
  EXPECT_EQ(packed(5), "sssss");
  for (std::uint64_t slot = 0; slot < 8; ++slot) rig_.slotted().let_go_of_held(slot);
  ASSERT_EQ(code_of(rig_.release(3)), "ok");
  EXPECT_EQ(code_of(rig_.pack()), "ok");
  EXPECT_EQ(packed(4), "ppps");
  EXPECT_EQ(rig_.check_slots(), "ok");
}

TEST_F(TrackPackerTest, AFailureOfTheDiskIsReportedAndTheTracksStay) {
  rig_.fill_tracks(1, 2);
  rig_.start_packing();
  const std::uint64_t at = kReservedBytes + rig_.place(2).number * kTrackBytes;
  rig_.disk.fail_reads({at + 4096, 512});
  EXPECT_EQ(code_of(rig_.pack()), "ok");
  EXPECT_EQ(packed(3), "pss");
  ASSERT_EQ(rig_.reports.size(), 2u);
  EXPECT_NE(rig_.reports.back().trouble, "");
}

// Blocks the packing thread when it knows what the track holds, before it reads it for the pack:
// from its beginning, and more than its header.
class HeldUp {
 public:
  explicit HeldUp(SlotRig& rig) : owner_(std::this_thread::get_id()) {
    rig.hooked->before_read = [this](std::uint64_t offset, std::size_t bytes) {
      if (std::this_thread::get_id() == owner_ || offset % kTrackBytes != kReservedBytes ||
          bytes == kBlockBytes) {
        return;
      }
      reached_ = true;
      go_on_.wait(false);
    };
  }
  [[nodiscard]] bool reached() const { return reached_; }
  void go_on() {
    go_on_ = true;
    go_on_.notify_all();
  }

 private:
  const std::thread::id owner_;
  std::atomic<bool> reached_{false};
  std::atomic<bool> go_on_{false};
};

TEST_F(TrackPackerTest, StopsInTheMiddleAndLosesNothing) {
  rig_.fill_tracks(1, 3);
  HeldUp held(rig_);
  rig_.start_packing();
  std::optional<Result<void>> outcome;
  rig_.array->pack_now([&](Result<void> result) { outcome = std::move(result); });
  ASSERT_TRUE(rig_.wait([&] { return held.reached(); }));
  rig_.array->stop();
  EXPECT_FALSE(rig_.array->idle());
  held.go_on();
  ASSERT_TRUE(rig_.wait([&] { return rig_.array->idle(); }));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(code_of(*outcome), "aborted");
  EXPECT_EQ(packed(4), "ssss");
  EXPECT_EQ(rig_.check_slots(), "ok");
  std::optional<Result<void>> late;
  rig_.array->pack_now([&](Result<void> result) { late = std::move(result); });
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(code_of(*late), "unavailable");
}

TEST_F(TrackPackerTest, TracksThatAreFreedWhileTheyArePackedAreLetGoOf) {
  rig_.fill_tracks(1, 3);
  HeldUp held(rig_);
  rig_.start_packing();
  std::optional<Result<void>> outcome;
  rig_.array->pack_now([&](Result<void> result) { outcome = std::move(result); });
  ASSERT_TRUE(rig_.wait([&] { return held.reached(); }));
  ASSERT_EQ(code_of(rig_.release(2)), "ok");
  held.go_on();
  ASSERT_TRUE(rig_.wait([&] { return outcome.has_value(); }));
  EXPECT_EQ(code_of(*outcome), "ok");
  EXPECT_EQ(packed(3), "pps");
  EXPECT_EQ(rig_.check_slots(), "ok");
  for (const std::uint64_t sequence : {2, 3, 4}) EXPECT_TRUE(rig_.readable(sequence));
}

TEST(TrackPackerLengthTest, TheMoreAPackSavesTheMoreTheNextOneTakes) {
  SlotRig rig({.slots = 32});
  ASSERT_TRUE(rig.open());
  rig.fill_tracks(1, 6);
  rig.append(8, 0);
  rig.start_packing({.pack_bytes = 32 * kTrackBytes});
  ASSERT_TRUE(rig.pack().has_value());
  std::vector<std::size_t> tracks;
  for (const PackingReport& report : rig.reports) tracks.push_back(report.tracks);
  EXPECT_EQ(tracks, (std::vector<std::size_t>{1, 4, 1})) << "a 32nd of the disk, then an eighth";
}

// A track may have been freed and taken anew when its pack is done: it is another one by then.
TEST(TrackPackerRoundTest, ATrackThatWasTakenAnewIsNotThePackedOne) {
  SlotRig rig;
  ASSERT_TRUE(rig.open());
  rig.fill_tracks(1, 1);
  HeldUp held(rig);
  rig.start_packing();
  std::optional<Result<void>> outcome;
  rig.array->pack_now([&](Result<void> result) { outcome = std::move(result); });
  ASSERT_TRUE(rig.wait([&] { return held.reached(); }));
  const std::uint64_t track = *rig.member().tracks.track(1);
  std::uint64_t sequence = 10;
  LogDisk& log_disk = *rig.member().log_disk;
  while (*rig.member().tracks.track(log_disk.current_allocation()) != track) {
    ASSERT_TRUE(rig.release(log_disk.current_allocation()).has_value());
    rig.leave_track();
    rig.append(sequence++);
    ASSERT_LT(sequence, 100u);
  }
  held.go_on();
  ASSERT_TRUE(rig.wait([&] { return outcome.has_value(); }));
  EXPECT_EQ(rig.place(log_disk.current_allocation()).kind, Kind::kSlot);
  const std::uint64_t in_it = sequence - 1;
  rig.append(sequence);
  EXPECT_TRUE(rig.failures.empty());
  EXPECT_TRUE(rig.readable(in_it));
  EXPECT_TRUE(rig.durable.contains(sequence) && rig.readable(sequence));
  EXPECT_EQ(rig.check_slots(), "ok");
}

// One flipped bit costs what stood there, not the log.
TEST(TrackPackerDamageTest, RecoveryReportsADamagedPack) {
  for (const bool table : {true, false}) {
    SlotRig rig;
    ASSERT_TRUE(rig.open());
    rig.fill_tracks(1, 3);
    rig.start_packing();
    ASSERT_TRUE(rig.pack().has_value());
    const PackPlace pack = rig.slotted().map().pack(2);
    rig.disk.flip_bit(rig.slotted().offset_of(pack.extents[0]) + (table ? pack.table_at + 20 : 90),
                      4);
    rig.crash();
    ASSERT_TRUE(rig.open());
    EXPECT_FALSE(rig.recovered.damage.empty());
    EXPECT_EQ(rig.visited.size(), 3u) << "1, 3 and 4";
    EXPECT_TRUE(rig.readable(1) && rig.readable(3) && rig.readable(4));
    EXPECT_FALSE(rig.readable(2));
  }
}

// Of several tracks in a row, wherever the search for the log's end meets them.
TEST(TrackPackerDamageTest, WhatIsBehindADamagedPackIsFound) {
  std::size_t long_ones = 0;
  for (std::uint64_t id = 1;; ++id) {
    SlotRig rig({.slots = 32});
    ASSERT_TRUE(rig.open());
    rig.start_packing({.pack_bytes = 32 * test::kTrackBytes});
    std::uint64_t next = 1;
    for (int round = 0; round < 6; ++round) {
      rig.fill_tracks(next, 4);
      next += 5;
      ASSERT_TRUE(rig.pack().has_value());
    }
    if (!rig.slotted().map().packs().contains(id)) break;
    const PackPlace pack = rig.slotted().map().pack(id);
    if (pack.tracks.size() > kLookAheadTracks) ++long_ones;
    const std::uint64_t table = rig.slotted().offset_of(pack.extents[0]) + pack.table_at;
    rig.disk.flip_bit(table + 20, 4);
    rig.crash();
    int reads_of_table = 0;
    rig.hooked->before_read = [&](std::uint64_t offset, std::size_t bytes) {
      if (offset < table + pack.table_bytes && offset + bytes > table) ++reads_of_table;
    };
    ASSERT_TRUE(rig.open());
    EXPECT_FALSE(rig.recovered.damage.empty());
    EXPECT_EQ(rig.visited.size(), next - 1 - pack.tracks.size()) << "pack " << id;
    EXPECT_TRUE(rig.visited.contains(next - 1)) << "the last one";
    EXPECT_LT(reads_of_table, 20) << "not for each block of its tracks";
    rig.append(next);
    EXPECT_TRUE(rig.readable(next) && rig.readable(next - 1));
  }
  EXPECT_GT(long_ones, 2u);
}

}  // namespace
}  // namespace mariner::logging
