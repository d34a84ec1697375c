#include "logging/rotational_placement.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace mariner::logging {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = Placement::Time;

// A revolution of 10 ms over 100 sectors: a sector passes in 100 us.
constexpr Time kRotation = milliseconds(10);
constexpr Time kSector = microseconds(100);
constexpr SectorRange kRotationalTrack{1000, 100};

RotationalPlacement::Options options() {
  return {.rotation = kRotation,
          .look_ahead_sectors = 5,
          .track_skew = milliseconds(1),
          .t_switch = 6,
          .t_idle = milliseconds(50)};
}

// A placement whose head leaves sector `sector` of a fresh track at time 0.
RotationalPlacement with_head_behind(std::uint64_t sector, std::span<const SectorRange> used = {}) {
  RotationalPlacement placement(options());
  placement.start_track(kRotationalTrack, used, Time{0});
  placement.completed({sector, 1}, Time{0});
  return placement;
}

TEST(RotationalPlacement, HasNoPlaceBeforeATrackIsStarted) {
  const RotationalPlacement placement(options());
  EXPECT_FALSE(placement.place(1, Time{0}).has_value());
  EXPECT_EQ(placement.room(), 0u);
  EXPECT_FALSE(placement.recalibration_due().has_value());
  EXPECT_FALSE(placement.recalibration_sector(Time{0}).has_value());
  EXPECT_TRUE(placement.wants_next_track());
}

TEST(RotationalPlacement, LooksAheadFromWhereTheLastCommandEnded) {
  const auto placement = with_head_behind(1009);
  const auto place = placement.place(8, Time{0});
  EXPECT_EQ(place->sector, 1015u);
  EXPECT_EQ(place->done, (5 + 8) * kSector);
}

TEST(RotationalPlacement, FollowsTheHeadByFormula41) {
  const auto placement = with_head_behind(1009);
  EXPECT_EQ(placement.place(1, 30 * kSector)->sector, 1045u);
  EXPECT_EQ(placement.place(1, 30 * kSector + kSector / 2)->sector, 1046u)
      << "the look-ahead counts whole sectors";
  EXPECT_EQ(placement.place(1, 88 * kSector)->sector, 1003u) << "around the track's end";
  EXPECT_EQ(placement.place(1, 7 * kRotation + 30 * kSector)->sector, 1045u);
}

TEST(RotationalPlacement, PredictsWhenTheBatchIsOnTheMedium) {
  const auto placement = with_head_behind(1009);
  const Time now = 30 * kSector + kSector / 2;
  EXPECT_EQ(placement.place(10, now)->done, (31 + 5 + 10) * kSector);
}

TEST(RotationalPlacement, LooksAheadFromWhereTheHeadIsAfterTheCommandsDelay) {
  auto delayed = options();
  delayed.command_delay = 3 * kSector;
  RotationalPlacement placement(delayed);
  placement.start_track(kRotationalTrack, {}, Time{0});
  placement.completed({1009, 1}, Time{0});
  const auto place = placement.place(10, 2 * kSector);
  EXPECT_EQ(place->sector, 1010u + 2 + 3 + 5);
  EXPECT_EQ(place->done, (2 + 3 + 5 + 10) * kSector);
}

TEST(RotationalPlacement, WaitsForTheGapThatComesSoonest) {
  const std::vector<SectorRange> used{{1000, 20}, {1030, 30}};
  const auto placement = with_head_behind(1035, used);
  EXPECT_EQ(placement.place(10, Time{0})->sector, 1060u) << "the head is over used sectors";
  EXPECT_EQ(placement.place(40, Time{0})->sector, 1060u);
  EXPECT_EQ(placement.place(10, 40 * kSector)->sector, 1081u) << "inside a gap";
  EXPECT_EQ(placement.place(10, 53 * kSector)->sector, 1020u)
      << "what is left of the gap is too short";
  EXPECT_EQ(placement.place(15, 40 * kSector)->sector, 1081u);
  EXPECT_EQ(placement.place(20, 41 * kSector)->sector, 1060u)
      << "a revolution later, because no other gap is long enough";
  EXPECT_FALSE(placement.place(41, Time{0}).has_value());
  EXPECT_EQ(placement.room(), 40u);
}

TEST(RotationalPlacement, DoesNotWrapAroundTheEndOfTheTrack) {
  const auto placement = with_head_behind(1090);
  EXPECT_EQ(placement.place(4, Time{0})->sector, 1096u);
  const auto place = placement.place(5, Time{0});
  EXPECT_EQ(place->sector, 1000u);
  EXPECT_EQ(place->done, (9 + 5) * kSector);
}

TEST(RotationalPlacement, FillsATrackCompletely) {
  auto placement = with_head_behind(1000);
  for (std::uint32_t filled = 0; filled < kRotationalTrack.count; filled += 10) {
    const auto place = placement.place(placement.room() >= 10 ? 10 : placement.room(), Time{0});
    ASSERT_TRUE(place.has_value());
    const SectorRange range{place->sector, std::min<std::uint32_t>(10, placement.room())};
    placement.dispatched(range, Time{0});
    placement.completed(range, Time{0});
    if (placement.room() == 0) break;
  }
  while (placement.room() > 0) {
    const std::uint32_t sectors = placement.room();
    const SectorRange range{placement.place(sectors, Time{0})->sector, sectors};
    placement.dispatched(range, Time{0});
  }
  EXPECT_FALSE(placement.place(1, Time{0}).has_value());
  EXPECT_TRUE(placement.wants_next_track());
  EXPECT_DOUBLE_EQ(placement.utilization(), 1.0);
}

TEST(RotationalPlacement, PlacesBehindTheBatchInFlight) {
  auto placement = with_head_behind(1009);
  placement.dispatched({1015, 10}, Time{0});  // ends at sector 1025, 15 sectors from now
  const auto place = placement.place(10, 2 * kSector);
  EXPECT_EQ(place->sector, 1030u);
  EXPECT_EQ(place->done, (15 + 5 + 10) * kSector);
  placement.completed({1015, 10}, 16 * kSector);
  EXPECT_EQ(placement.place(10, 17 * kSector)->sector, 1031u);
}

TEST(RotationalPlacement, MeasuresFragmentationByFormula42) {
  auto placement = with_head_behind(1000);
  EXPECT_DOUBLE_EQ(placement.fragmentation(), 0.0);
  placement.dispatched({1010, 20}, Time{0});
  placement.dispatched({1040, 20}, Time{0});
  EXPECT_DOUBLE_EQ(placement.utilization(), 0.4);
  EXPECT_DOUBLE_EQ(placement.fragmentation(), 2 / (10 * 0.6));
  placement.dispatched({1030, 10}, Time{0});
  EXPECT_DOUBLE_EQ(placement.fragmentation(), 3 / (10 * 0.5)) << "ranges that touch count singly";
}

TEST(RotationalPlacement, WantsTheNextTrackAboveTSwitch) {
  auto placement = with_head_behind(1000);
  std::uint64_t sector = 1000;
  // n / (10 (1 - n / 100)) exceeds 6 at n = 38.
  for (int writes = 0; writes < 37; ++writes) placement.dispatched({sector++, 1}, Time{0});
  EXPECT_FALSE(placement.wants_next_track());
  placement.dispatched({sector, 1}, Time{0});
  EXPECT_TRUE(placement.wants_next_track());
}

TEST(RotationalPlacement, CountsTheWritesThatRecoveryFound) {
  const std::vector<SectorRange> used{{1000, 10}, {1010, 10}, {1050, 30}};
  RotationalPlacement placement(options());
  placement.start_track(kRotationalTrack, used, Time{0});
  EXPECT_DOUBLE_EQ(placement.utilization(), 0.5);
  EXPECT_DOUBLE_EQ(placement.fragmentation(), 3 / (10 * 0.5));
}

TEST(RotationalPlacement, ExpectsHalfARevolutionOfAHeadThatMayBeAnywhere) {
  RotationalPlacement placement(options());
  placement.start_track(kRotationalTrack, {}, Time{0});
  EXPECT_EQ(placement.place(10, Time{0})->done, milliseconds(1) + kRotation / 2 + 10 * kSector);
  EXPECT_EQ(placement.recalibration_sector(Time{0}), 1000u);
}

TEST(RotationalPlacement, KeepsTheAngleOnTheNextTrack) {
  auto placement = with_head_behind(1009);
  placement.start_track({1100, 100}, {}, 30 * kSector);
  EXPECT_EQ(placement.recalibration_sector(30 * kSector), 1145u)
      << "the sector under the head, one track on, and the look-ahead";
  const auto place = placement.place(10, 30 * kSector);
  EXPECT_EQ(place->sector, 1145u);
  EXPECT_EQ(place->done, 30 * kSector + milliseconds(1) + 15 * kSector) << "switch included";
  placement.completed({1145, 1}, 46 * kSector);
  EXPECT_EQ(placement.place(10, 46 * kSector)->done, (46 + 5 + 10) * kSector);
}

TEST(RotationalPlacement, KeepsTheAngleWhereTracksBecomeShorter) {
  auto placement = with_head_behind(1049);  // half a revolution
  placement.start_track({1100, 50}, {}, Time{0});
  EXPECT_EQ(placement.recalibration_sector(Time{0}), 1100u + 25 + 5);
}

TEST(RotationalPlacement, ForgetsTheAngleOnADistantTrack) {
  auto placement = with_head_behind(1009);
  placement.start_track({5000, 100}, {}, 30 * kSector);
  EXPECT_EQ(placement.recalibration_sector(30 * kSector), 5000u);
  EXPECT_EQ(placement.recalibration_due(), 30 * kSector) << "at once";
}

TEST(RotationalPlacement, IgnoresTheEndOfABatchOfTheTrackBefore) {
  auto placement = with_head_behind(1009);
  placement.dispatched({1015, 10}, Time{0});
  placement.start_track({1100, 100}, {}, kSector);
  const auto before = placement.place(1, 20 * kSector);
  placement.completed({1015, 10}, 17 * kSector);
  EXPECT_EQ(placement.place(1, 20 * kSector)->sector, before->sector);
}

TEST(RotationalPlacement, IsDueForRecalibrationAfterTIdle) {
  auto placement = with_head_behind(1009);
  EXPECT_EQ(placement.recalibration_due(), milliseconds(50));
  placement.dispatched({1050, 1}, milliseconds(20));
  EXPECT_EQ(placement.recalibration_due(), milliseconds(70));
  placement.completed({1050, 1}, milliseconds(21));
  EXPECT_EQ(placement.recalibration_due(), milliseconds(71));
  EXPECT_EQ(placement.recalibration_sector(milliseconds(21)), 1056u);
}

TEST(RotationalPlacement, NeverRecalibratesWithoutTIdle) {
  auto never = options();
  never.t_idle = Time{0};
  RotationalPlacement placement(never);
  placement.start_track(kRotationalTrack, {}, Time{0});
  EXPECT_FALSE(placement.recalibration_due().has_value());
}

// Random batches at random times on tracks of random use: the model is a bitmap.
class PlacementProperty : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t random(std::uint64_t below) { return random_() % below; }

  void start_track(RotationalPlacement& placement) {
    const auto length = static_cast<std::uint32_t>(1 + random(300));
    const bool next = random(2) == 0;
    track_ = {next ? track_.end() : random(1'000'000), length};
    taken_.assign(length, false);
    std::vector<SectorRange> used;
    for (std::uint64_t i = random(4); i > 0; --i) {
      SectorRange range{track_.first + random(length), static_cast<std::uint32_t>(random(40))};
      range.count = std::min<std::uint32_t>(range.count,
                                            static_cast<std::uint32_t>(track_.end() - range.first));
      if (!is_free(range)) continue;
      take(range);
      used.push_back(range);
    }
    placement.start_track(track_, used, now_);
  }
  bool is_free(SectorRange range) const {
    for (std::uint64_t s = range.first; s < range.end(); ++s) {
      if (taken_[s - track_.first]) return false;
    }
    return true;
  }
  void take(SectorRange range) {
    for (std::uint64_t s = range.first; s < range.end(); ++s) taken_[s - track_.first] = true;
  }
  std::uint32_t longest_free() const {
    std::uint32_t longest = 0;
    std::uint32_t run = 0;
    for (const bool taken : taken_) {
      run = taken ? 0 : run + 1;
      longest = std::max(longest, run);
    }
    return longest;
  }

  std::mt19937_64 random_{GetParam()};
  Time now_{0};
  SectorRange track_;
  std::vector<bool> taken_;
};

TEST_P(PlacementProperty, NeverTouchesUsedSectorsNorLeavesTheTrack) {
  auto chosen = options();
  chosen.look_ahead_sectors = static_cast<std::uint32_t>(random(400));
  chosen.rotation = Time(1 + random(20'000'000));
  chosen.command_delay = Time(random(2'000'000));
  RotationalPlacement placement(chosen);
  start_track(placement);
  std::vector<SectorRange> in_flight;
  for (int step = 0; step < 2000; ++step) {
    now_ += Time(random(random(10) == 0 ? 1'000'000'000 : 3'000'000));
    ASSERT_EQ(placement.room(), longest_free());
    if (placement.room() == 0 || random(60) == 0) start_track(placement);
    const auto sectors = static_cast<std::uint32_t>(1 + random(random(2) == 0 ? 12 : 120));
    const auto place = placement.place(sectors, now_);
    ASSERT_EQ(place.has_value(), sectors <= longest_free());
    if (place) {
      const SectorRange range{place->sector, sectors};
      ASSERT_TRUE(track_.contains(range)) << step;
      ASSERT_TRUE(is_free(range)) << step;
      ASSERT_GT(place->done, now_);
      take(range);
      placement.dispatched(range, now_);
      in_flight.push_back(range);
    }
    while (!in_flight.empty() && random(3) > 0) {
      placement.completed(in_flight.front(), now_);
      in_flight.erase(in_flight.begin());
    }
    if (const auto sector = placement.recalibration_sector(now_); random(10) == 0) {
      ASSERT_TRUE(track_.empty() || track_.contains(*sector));
      placement.completed({*sector, 1}, now_);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlacementProperty, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace mariner::logging
