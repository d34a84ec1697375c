#include "logging/append_placement.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::logging {
namespace {

using std::chrono::microseconds;
using Time = Placement::Time;

constexpr SectorRange kTrack{1000, 100};

TEST(AppendPlacement, HasNoPlaceBeforeATrackIsStarted) {
  const AppendPlacement placement({});
  EXPECT_FALSE(placement.place(1, Time{0}).has_value());
  EXPECT_EQ(placement.room(), 0u);
  EXPECT_TRUE(placement.wants_next_track());
}

TEST(AppendPlacement, PutsEachBatchBehindTheOneBefore) {
  AppendPlacement placement({});
  placement.start_track(kTrack, {}, Time{0});
  EXPECT_EQ(placement.place(7, Time{0})->sector, 1000u);
  placement.dispatched({1000, 7}, Time{0});
  EXPECT_EQ(placement.place(3, Time{0})->sector, 1007u);
  EXPECT_EQ(placement.room(), 93u);
}

TEST(AppendPlacement, ContinuesBehindWhatRecoveryFound) {
  AppendPlacement placement({});
  const std::vector<SectorRange> used{{1050, 10}, {1000, 20}};
  placement.start_track(kTrack, used, Time{0});
  EXPECT_EQ(placement.place(1, Time{0})->sector, 1060u);
  EXPECT_EQ(placement.room(), 40u);
}

TEST(AppendPlacement, FillsATrackToItsLastSector) {
  AppendPlacement placement({});
  placement.start_track(kTrack, {}, Time{0});
  placement.dispatched({1000, 99}, Time{0});
  EXPECT_FALSE(placement.wants_next_track());
  EXPECT_TRUE(placement.place(1, Time{0}).has_value());
  EXPECT_FALSE(placement.place(2, Time{0}).has_value());
  placement.dispatched({1099, 1}, Time{0});
  EXPECT_FALSE(placement.place(1, Time{0}).has_value());
  EXPECT_TRUE(placement.wants_next_track());
  placement.start_track({1100, 100}, {}, Time{0});
  EXPECT_EQ(placement.place(1, Time{0})->sector, 1100u);
}

TEST(AppendPlacement, LearnsHowLongAWriteTakes) {
  AppendPlacement placement({.write_time = microseconds(800)});
  placement.start_track({0, 1'000'000}, {}, Time{0});
  Time now{0};
  EXPECT_EQ(placement.place(1, now)->done, microseconds(800));
  for (std::uint64_t sector = 0; sector < 100; ++sector) {
    placement.dispatched({sector, 1}, now);
    now += microseconds(80);
    placement.completed({sector, 1}, now);
  }
  const Time predicted = placement.place(1, now)->done - now;
  EXPECT_NEAR(static_cast<double>(predicted.count()), 80'000, 1'000);
}

// Or the disk would not be chosen again, and never show that it is well.
TEST(AppendPlacement, OneHangDoesNotMakeItSlowForEver) {
  AppendPlacement placement({.write_time = microseconds(800)});
  placement.start_track({0, 1'000'000}, {}, Time{0});
  placement.dispatched({0, 1}, Time{0});
  const Time now = std::chrono::seconds(30);
  placement.completed({0, 1}, now);
  EXPECT_LE(placement.place(1, now)->done - now, microseconds(1200));
}

TEST(AppendPlacement, QueuesBehindTheBatchInFlight) {
  AppendPlacement placement({.write_time = microseconds(100)});
  placement.start_track(kTrack, {}, Time{0});
  placement.dispatched({1000, 5}, Time{0});
  EXPECT_EQ(placement.place(1, microseconds(30))->done, microseconds(200));
  // One that takes longer than predicted could end any moment now.
  EXPECT_EQ(placement.place(1, microseconds(500))->done, microseconds(600));
  placement.completed({1000, 5}, microseconds(600));
  EXPECT_GT(placement.place(1, microseconds(700))->done, microseconds(800));
}

TEST(AppendPlacement, HasNoHeadToFollow) {
  AppendPlacement placement({});
  placement.start_track(kTrack, {}, Time{0});
  EXPECT_FALSE(placement.recalibration_due().has_value());
  EXPECT_FALSE(placement.recalibration_sector(Time{0}).has_value());
}

}  // namespace
}  // namespace mariner::logging
