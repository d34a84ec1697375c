#include "logging/geometry.h"

#include <gtest/gtest.h>

#include <vector>

namespace mariner::logging {
namespace {

using std::chrono::microseconds;

Geometry drive_of_three_zones() {
  const std::vector<Zone> zones{{100, 4, 10}, {140, 2, 8}, {200, 3, 5}};
  return *Geometry::make({.sector_bytes = 512, .rotation = microseconds(8333), .zones = zones});
}

Result<Geometry> make(const std::vector<Zone>& zones, std::uint32_t sector_bytes = 512) {
  return Geometry::make({.sector_bytes = sector_bytes, .zones = zones});
}

TEST(SectorRange, IsHalfOpen) {
  constexpr SectorRange range{10, 5};
  static_assert(range.end() == 15 && !range.empty());
  static_assert(range.contains(10) && range.contains(14) && !range.contains(15));
  static_assert(range.contains(SectorRange{12, 3}) && !range.contains(SectorRange{12, 4}));
  static_assert(range.overlaps({14, 9}) && !range.overlaps({15, 9}) && !range.overlaps({5, 5}));
  static_assert(!range.overlaps({12, 0}));
}

TEST(Geometry, NumbersTracksAcrossZones) {
  const Geometry geometry = drive_of_three_zones();
  EXPECT_EQ(geometry.track_count(), 9u);
  EXPECT_EQ(geometry.track(0), (SectorRange{100, 10}));
  EXPECT_EQ(geometry.track(3), (SectorRange{130, 10}));
  EXPECT_EQ(geometry.track(4), (SectorRange{140, 8}));
  EXPECT_EQ(geometry.track(6), (SectorRange{200, 5}));
  EXPECT_EQ(geometry.track(8), (SectorRange{210, 5}));
  EXPECT_EQ(geometry.bytes(), (40u + 16u + 15u) * 512u);
  EXPECT_EQ(geometry.end_sector(), 215u);
  EXPECT_TRUE(geometry.rotates());
}

TEST(Geometry, FindsTheTrackOfEachSector) {
  const Geometry geometry = drive_of_three_zones();
  for (std::uint64_t number = 0; number < geometry.track_count(); ++number) {
    const SectorRange track = geometry.track(number);
    for (std::uint64_t sector = track.first; sector < track.end(); ++sector) {
      EXPECT_TRUE(geometry.contains(sector));
      EXPECT_EQ(geometry.track_of(sector), number);
    }
  }
  for (const std::uint64_t outside : {0u, 99u, 156u, 199u, 215u}) {
    EXPECT_FALSE(geometry.contains(outside)) << outside;
  }
}

TEST(Geometry, UniformTracksOfAFileDoNotRotate) {
  const auto geometry = Geometry::uniform(
      {.sector_bytes = 4096, .first_sector = 256, .tracks = 1000, .sectors_per_track = 2048});
  ASSERT_TRUE(geometry.has_value());
  EXPECT_FALSE(geometry->rotates());
  EXPECT_EQ(geometry->track(999), (SectorRange{256 + 999 * 2048, 2048}));
  EXPECT_EQ(geometry->bytes(), std::uint64_t{1000} * 2048 * 4096);
}

TEST(Geometry, TakesAsManyZonesAsItMay) {
  std::vector<Zone> zones;
  for (std::size_t i = 0; i < Geometry::kZonesMax; ++i) zones.push_back({i * 100, 1, 100});
  EXPECT_TRUE(make(zones).has_value());
  zones.push_back({zones.size() * 100, 1, 100});
  EXPECT_EQ(make(zones).error().code, ErrorCode::kInvalidArgument);
}

TEST(Geometry, RefusesWhatIsNoDisk) {
  const std::vector<Zone> good{{0, 1, 1}};
  EXPECT_TRUE(make(good).has_value());
  EXPECT_FALSE(make(good, 520).has_value());
  EXPECT_FALSE(make({}).has_value());
  EXPECT_FALSE(make({{0, 0, 8}}).has_value());
  EXPECT_FALSE(make({{0, 8, 0}}).has_value());
  EXPECT_FALSE(Geometry::make({.rotation = microseconds(-1), .zones = good}).has_value());
}

TEST(Geometry, RefusesZonesThatOverlapOrDescend) {
  EXPECT_TRUE(make({{0, 2, 10}, {20, 1, 10}}).has_value());
  EXPECT_FALSE(make({{0, 2, 10}, {19, 1, 10}}).has_value());
  EXPECT_FALSE(make({{100, 2, 10}, {0, 1, 10}}).has_value());
}

TEST(Geometry, RefusesWhatDoesNotFitIntoTheLargestDisk) {
  constexpr std::uint64_t kSectorsMax = Geometry::kBytesMax / 512;
  EXPECT_TRUE(make({{0, kSectorsMax, 1}}).has_value());
  EXPECT_FALSE(make({{1, kSectorsMax, 1}}).has_value());
  EXPECT_FALSE(make({{0, UINT64_MAX, UINT32_MAX}}).has_value());
  EXPECT_FALSE(make({{UINT64_MAX, 1, 1}}).has_value());
}

TEST(Geometry, IsAValue) {
  EXPECT_EQ(drive_of_three_zones(), drive_of_three_zones());
  EXPECT_NE(drive_of_three_zones(), *make({{0, 1, 1}}));
}

}  // namespace
}  // namespace mariner::logging
