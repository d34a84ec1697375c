#include "logging/batch_length.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "logging/append_placement.h"
#include "logging/rotational_placement.h"

namespace mariner::logging {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = Placement::Time;

// 100 us a sector, 100 sectors, the head before sector `head`, which is reached at once.
RotationalPlacement disk(std::uint32_t head, const std::vector<SectorRange>& used) {
  RotationalPlacement placement({.rotation = milliseconds(10), .look_ahead_sectors = 5});
  placement.start_track({0, 100}, used, Time{0});
  placement.completed({head + 94, 1}, Time{0});  // five before it, around the end
  return placement;
}

// Of requests of so many sectors, in batches with `overhead` sectors of their own.
std::size_t length(const Placement& placement, std::vector<std::uint32_t> sectors,
                   std::uint32_t overhead = 0) {
  std::partial_sum(sectors.begin(), sectors.end(), sectors.begin());
  for (std::uint32_t& batch : sectors) batch += overhead;
  return batch_length(placement, sectors, Time{0});
}

TEST(BatchLength, IsEverythingWhereEachPlaceIsAsGood) {
  AppendPlacement placement({});
  placement.start_track({0, 100}, {}, Time{0});
  EXPECT_EQ(length(placement, std::vector<std::uint32_t>(100, 1)), 100u);
  EXPECT_EQ(length(placement, std::vector<std::uint32_t>(101, 1)), 100u) << "as much as fits";
}

TEST(BatchLength, IsNothingOfNothing) {
  AppendPlacement placement({});
  placement.start_track({0, 100}, {}, Time{0});
  EXPECT_EQ(length(placement, {}), 0u);
  EXPECT_EQ(length(placement, {101, 1}), 0u) << "the first does not fit, and order is kept";
}

TEST(BatchLength, IsEverythingInALongGap) {
  const auto placement = disk(0, {{60, 40}});
  EXPECT_EQ(length(placement, {10, 10, 10}), 3u);
}

TEST(BatchLength, FillsTheGapAtHandInsteadOfWaitingForALongerOne) {
  const auto placement = disk(0, {{25, 45}});  // free: 25 sectors now, 30 much later
  EXPECT_EQ(length(placement, {10, 10, 10}), 2u);
}

TEST(BatchLength, SkipsAGapThatIsNotWorthIt) {
  const auto placement = disk(0, {{2, 3}});  // two sectors now, many three sectors later
  EXPECT_EQ(length(placement, {1, 1, 30}), 3u);
}

TEST(BatchLength, CountsWhatTheBatchNeedsForItself) {
  AppendPlacement placement({});
  placement.start_track({0, 10}, {}, Time{0});
  const std::vector<std::uint32_t> requests(10, 2);
  EXPECT_EQ(length(placement, requests), 5u);
  EXPECT_EQ(length(placement, requests, 1), 4u);
}

}  // namespace
}  // namespace mariner::logging
