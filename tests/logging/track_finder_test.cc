#include "logging/track_finder.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sim/latency_disk.h"
#include "tests/sim/timed_drive.h"

namespace mariner::logging {
namespace {

using mariner::test::LatencyDisk;
using mariner::test::SimulatedDrive;
using mariner::test::TimedDrive;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kManySectors = 1'000'000;

class TrackFinderTest : public ::testing::Test {
 protected:
  // Two tracks of 300 sectors, three of 200, two of 450.
  TrackFinderTest() {
    const std::vector<Zone> zones{{0, 2, 300}, {600, 3, 200}, {1200, 2, 450}};
    auto options = SimulatedDrive::deskstar(6);
    options.geometry =
        *Geometry::make({.sector_bytes = 512, .rotation = milliseconds(10), .zones = zones});
    disk_ = std::make_unique<TimedDrive>(TimedDrive::Options{.drive = options});
    meter_ = std::make_unique<PhaseMeter>(*disk_, kManySectors);
    EXPECT_TRUE(meter_->repeat(0)->steady);
    finder_ = std::make_unique<TrackFinder>(*meter_, options.geometry.end_sector());
  }

  std::unique_ptr<TimedDrive> disk_;
  std::unique_ptr<PhaseMeter> meter_;
  std::unique_ptr<TrackFinder> finder_;
};

TEST_F(TrackFinderTest, ATrackEndsWhereTheNextBegins) {
  for (const std::uint64_t first : {0, 300, 600, 800, 1000, 1200}) {
    SCOPED_TRACE(first);
    const auto border = finder_->border_after(first);
    ASSERT_TRUE(border.has_value() && border->has_value());
    EXPECT_EQ((*border)->origin, first);
    EXPECT_EQ((*border)->sector, first < 600 ? first + 300 : first < 1200 ? first + 200 : 1650);
    EXPECT_NEAR((*border)->skew, 0.1445, 0.01);  // 1.2 ms and 0.245 ms of 10 ms
  }
}

TEST_F(TrackFinderTest, FromWithinATrackItFindsItsEndOrTheNext) {
  for (std::uint64_t origin = 1; origin < 300; ++origin) {
    SCOPED_TRACE(origin);
    const auto border = finder_->border_after(origin);
    ASSERT_TRUE(border.has_value() && border->has_value());
    EXPECT_EQ((*border)->sector, (*border)->origin == origin ? 300u : 600u);
    if (origin < 140) {
      EXPECT_EQ((*border)->origin, origin);
    }
    if ((*border)->origin != origin) {
      EXPECT_GE((*border)->origin, 300u);
    }
  }
}

TEST_F(TrackFinderTest, TheDiskEndsWithTheLastTrack) {
  const auto border = finder_->border_after(1650);
  ASSERT_TRUE(border.has_value());
  EXPECT_FALSE(border->has_value());
  EXPECT_FALSE(finder_->border_after(2099)->has_value());
}

TEST_F(TrackFinderTest, KnowsATrackWhenItSeesOne) {
  EXPECT_TRUE(*finder_->is_track(0, 300));
  EXPECT_TRUE(*finder_->is_track(300, 300));
  EXPECT_TRUE(*finder_->is_track(1000, 200));
  EXPECT_TRUE(*finder_->is_track(1650, 450));
  EXPECT_FALSE(*finder_->is_track(0, 299));
  EXPECT_FALSE(*finder_->is_track(0, 301));
  EXPECT_FALSE(*finder_->is_track(301, 299));
  EXPECT_FALSE(*finder_->is_track(299, 301));
  EXPECT_FALSE(*finder_->is_track(0, 600)) << "two of them";
  EXPECT_FALSE(*finder_->is_track(300, 150)) << "half of one";
  EXPECT_FALSE(*finder_->is_track(600, 600)) << "three of them";
}

TEST(TrackFinder, AConstantLatencyHasNoAngles) {
  LatencyDisk disk({.constant = milliseconds(8), .random = microseconds(20)});
  PhaseMeter meter(disk, kManySectors);
  ASSERT_TRUE(meter.repeat(0)->steady);
  TrackFinder finder(meter, kManySectors);
  const auto border = finder.border_after(0);
  ASSERT_FALSE(border.has_value());
  EXPECT_EQ(border.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(finder.even());
}

}  // namespace
}  // namespace mariner::logging
