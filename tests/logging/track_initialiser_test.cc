#include "logging/track_initialiser.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/logging/log_testing.h"
#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::kTrackBytes;
using test::LogRig;
using test::record_of;

class TrackInitialiserTest : public ::testing::Test {
 protected:
  void open() {
    ASSERT_TRUE(rig_.open());
    initialiser_ = std::make_unique<TrackInitialiser>(*rig_.log_disk, rig_.executor,
                                                      rig_.superblock, *rig_.writer);
    rig_.writer->set_track_gate(
        [this](std::uint8_t, std::uint64_t track) { return initialiser_->may_write(track); });
  }
  void SetUp() override { open(); }
  void TearDown() override { stop(); }
  void stop() {
    initialiser_->stop();
    rig_.executor.run_until_idle();
    EXPECT_TRUE(initialiser_->idle());
    rig_.writer->set_track_gate(nullptr);
    initialiser_.reset();
  }
  // Whether some write touched the track.
  bool touched(std::uint64_t track, std::size_t from_write = 0) const {
    const std::uint64_t first = kReservedBytes + track * kTrackBytes;
    for (std::size_t i = from_write; i < rig_.disk.writes().size(); ++i) {
      const ByteRange& write = rig_.disk.writes()[i];
      if (write.offset < first + kTrackBytes && first < write.end()) return true;
    }
    return false;
  }

  LogRig rig_{{.tracks = 6}};
  std::unique_ptr<TrackInitialiser> initialiser_;
};

TEST_F(TrackInitialiserTest, WritesEveryTrackOnceAndRemembersIt) {
  initialiser_->start();
  rig_.executor.run_until_idle();
  EXPECT_TRUE(initialiser_->done());
  std::uint64_t bytes = 0;
  for (const ByteRange& write : rig_.disk.writes()) {
    if (write.offset >= kReservedBytes) bytes += write.length;
  }
  EXPECT_EQ(bytes, 6 * kTrackBytes);
  EXPECT_EQ(read_superblock(rig_.disk)->initialised_tracks, 6u);
  const std::size_t writes = rig_.disk.writes().size();
  initialiser_->start();
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.disk.writes().size(), writes) << "once";
}

TEST_F(TrackInitialiserTest, NeverWritesToATrackThatIsTaken) {
  rig_.append_batches(1, 5, 1020);  // takes tracks 0, 1 and 2
  const std::size_t before = rig_.disk.writes().size();
  initialiser_->start();
  rig_.executor.run_until_idle();
  EXPECT_TRUE(initialiser_->done());
  EXPECT_FALSE(touched(0, before) || touched(1, before) || touched(2, before));
  EXPECT_TRUE(touched(3, before) && touched(5, before));
}

TEST_F(TrackInitialiserTest, TheWriterWaitsForTheWriteInItsTrackAndThenOwnsIt) {
  rig_.disk.hold();
  initialiser_->start();
  rig_.executor.run_until_idle();
  ASSERT_EQ(rig_.disk.in_flight(), 1u);
  rig_.append(record_of(1, 1));
  rig_.executor.run_until_idle();
  EXPECT_EQ(rig_.disk.in_flight(), 1u) << "the record waits";
  rig_.disk.release();
  rig_.executor.run_until_idle();
  ASSERT_EQ(rig_.outcomes.size(), 1u);
  EXPECT_TRUE(rig_.outcomes[0].result.has_value());
  EXPECT_TRUE(rig_.verify(record_of(1, 1), *rig_.outcomes[0].result).has_value());
  stop();
  rig_.close();
  open();
  EXPECT_EQ(test::sequences_text(rig_.visited), "1");
}

TEST_F(TrackInitialiserTest, LosesNothingWhileBothWriteAndThePowerGoes) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    LogRig rig({.seed = seed, .tracks = 4, .delay_max = std::chrono::microseconds(300)});
    ASSERT_TRUE(rig.open());
    auto initialiser = std::make_unique<TrackInitialiser>(*rig.log_disk, rig.executor,
                                                          rig.superblock, *rig.writer);
    rig.writer->set_track_gate(
        [&](std::uint8_t, std::uint64_t track) { return initialiser->may_write(track); });
    initialiser->start();
    for (std::uint64_t i = 1; i <= 5; ++i) {
      rig.append(record_of(1, i, i % 2 == 0 ? 700 : 3));
      rig.executor.advance(std::chrono::microseconds(seed * 17));
    }
    rig.disk.cut_power();
    std::size_t acknowledged = 0;
    for (const auto& outcome : rig.outcomes) acknowledged += outcome.result ? 1 : 0;
    initialiser->stop();
    rig.executor.run_until_idle();
    rig.writer->set_track_gate(nullptr);
    initialiser.reset();
    rig.close();
    rig.disk.restore_power();
    ASSERT_TRUE(rig.open());
    EXPECT_GE(rig.visited.size(), acknowledged) << "seed " << seed;
    EXPECT_EQ(test::damage_text(rig.recovered), "") << "seed " << seed;
    for (const test::Visited& v : rig.visited) {
      EXPECT_TRUE(rig.verify(v.record, v.location).has_value()) << "seed " << seed;
    }
  }
}

TEST_F(TrackInitialiserTest, GoesOnWhereItWas) {
  initialiser_->start();
  rig_.executor.advance(std::chrono::milliseconds(1));  // some writes of 1 MiB, 50 us apart
  stop();
  const std::uint64_t initialised = rig_.superblock.initialised_tracks;
  ASSERT_GT(initialised, 0u);
  ASSERT_LT(initialised, 6u);
  ASSERT_TRUE(update_superblock(rig_.disk, rig_.superblock).has_value());
  rig_.close();
  open();
  const std::size_t before = rig_.disk.writes().size();
  initialiser_->start();
  rig_.executor.run_until_idle();
  EXPECT_TRUE(initialiser_->done());
  EXPECT_FALSE(touched(initialised - 1, before));
}

TEST_F(TrackInitialiserTest, YieldsToAWriterAtWork) {
  const auto writes_in = [&](std::chrono::nanoseconds time) {
    const std::size_t before = rig_.disk.writes().size();
    rig_.executor.advance(time);
    return rig_.disk.writes().size() - before;
  };
  initialiser_->start();
  EXPECT_GE(writes_in(std::chrono::milliseconds(1)), 15u) << "50 us apart";
  // A record that waits for ever keeps the writer at work.
  rig_.writer->set_track_gate([](std::uint8_t, std::uint64_t) { return false; });
  rig_.append(record_of(1, 1));
  EXPECT_LE(writes_in(std::chrono::milliseconds(40)), 12u) << "4 ms apart";
  rig_.writer->set_track_gate(nullptr);
  rig_.writer->retry();
}

TEST_F(TrackInitialiserTest, StopsAtAnErrorAndLetsTheWriterGoOn) {
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kNothing);
  initialiser_->start();
  rig_.executor.run_until_idle();
  EXPECT_FALSE(initialiser_->done());
  EXPECT_TRUE(initialiser_->idle());
  EXPECT_TRUE(rig_.append_now(record_of(1, 1)).has_value());
}

// Of a log whose tracks stand in slots.
class SlotInitialiserTest : public ::testing::Test {
 protected:
  TrackInitialiser& initialiser() { return *rig_.member().initialiser; }
  void finish() {
    ASSERT_TRUE(rig_.wait([this] { return initialiser().done() && initialiser().idle(); }));
  }
  [[nodiscard]] std::uint64_t bytes_written_to(std::uint64_t slot,
                                               std::size_t from_write = 0) const {
    const std::uint64_t first = kReservedBytes + slot * kTrackBytes;
    std::uint64_t bytes = 0;
    for (std::size_t i = from_write; i < rig_.disk.writes().size(); ++i) {
      const ByteRange& write = rig_.disk.writes()[i];
      if (write.offset >= first && write.end() <= first + kTrackBytes) bytes += write.length;
    }
    return bytes;
  }
  void expect_all_written() {
    for (std::uint64_t slot = 0; slot < 8; ++slot) {
      EXPECT_EQ(bytes_written_to(slot), kTrackBytes) << "slot " << slot;
    }
  }

  test::SlotRig rig_;
};

TEST_F(SlotInitialiserTest, TheSlotsOfTracksThatAreNotBegunAreWrittenToo) {
  ASSERT_TRUE(rig_.open());
  ASSERT_EQ(rig_.place(2).kind, TrackPlace::Kind::kSlot);
  initialiser().start();
  finish();
  expect_all_written();
  rig_.fill_tracks(1, 2);
  rig_.close();
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(rig_.check_records(), "ok");
}

TEST_F(SlotInitialiserTest, WaitsForTheMapThatGivesTracksSlots) {
  rig_.disk.hold();
  ASSERT_TRUE(rig_.open());
  ASSERT_EQ(rig_.place(1).kind, TrackPlace::Kind::kNowhere);
  initialiser().start();
  rig_.executor.advance(std::chrono::milliseconds(30));
  EXPECT_EQ(rig_.disk.in_flight(), 1u) << "the map";
  rig_.disk.release();
  finish();
  expect_all_written();
}

TEST_F(SlotInitialiserTest, ATrackThatIsBegunIsTheWritersFromThenOn) {
  ASSERT_TRUE(rig_.open());
  rig_.disk.hold();
  initialiser().start();
  rig_.executor.run_ready();
  ASSERT_EQ(rig_.disk.in_flight(), 1u);
  bool written = false;
  rig_.array->writer().append(record_of(1, 1), test::whole(test::text_of(1, 1)), Urgency::kOrdinary,
                              [&](const Result<LoggedAt>& result) {
                                EXPECT_TRUE(result.has_value());
                                written = true;
                              });
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.disk.in_flight(), 1u) << "the record waits for the write in its track";
  rig_.disk.release();
  ASSERT_TRUE(rig_.wait([&] { return written; }));
  const std::size_t before = rig_.disk.writes().size();
  finish();
  EXPECT_EQ(bytes_written_to(0, before), 0u);
  EXPECT_EQ(bytes_written_to(1), kTrackBytes) << "it goes on with the next one";
  rig_.close();
  ASSERT_TRUE(rig_.open());
  EXPECT_EQ(rig_.visited.size(), 1u);
}

TEST_F(SlotInitialiserTest, LosesNothingWhileBothWriteAndThePowerGoes) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    test::SlotRig rig({.seed = seed, .delay_max = std::chrono::microseconds(300)});
    ASSERT_TRUE(rig.open());
    rig.member().initialiser->start();
    for (std::uint64_t i = 1; i <= 5; ++i) {
      rig.leave_track();
      rig.append(i, i % 2 == 0 ? 700 : 3);
      rig.executor.advance(std::chrono::microseconds(seed * 17));
    }
    rig.crash();
    ASSERT_TRUE(rig.open());
    EXPECT_EQ(rig.check_records(), "ok") << "seed " << seed;
    rig.executor.advance(std::chrono::milliseconds(10));  // until tracks have slots ahead
    EXPECT_EQ(rig.check_slots(), "ok") << "seed " << seed;
  }
}

}  // namespace
}  // namespace mariner::logging
