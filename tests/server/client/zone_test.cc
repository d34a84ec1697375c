#include "server/client/zone.h"

#include <gtest/gtest.h>

#include "tests/server/client/zones.h"

namespace mariner {
namespace {

constexpr std::int64_t kBerlinSpring2026 = 1774746000;  // 2026-03-29T01:00:00Z, 02:00 becomes 03:00
constexpr std::int64_t kBerlinAutumn2026 = 1792890000;  // 2026-10-25T01:00:00Z, 03:00 becomes 02:00

TEST(Zone, OffsetsFollowTheClockChange) {
  const ZoneOf berlin("Europe/Berlin");
  EXPECT_EQ(berlin.offset_s(kBerlinSpring2026 - 1), 3600);
  EXPECT_EQ(berlin.offset_s(kBerlinSpring2026), 7200);
  EXPECT_EQ(berlin.offset_s(kBerlinAutumn2026 - 1), 7200);
  EXPECT_EQ(berlin.offset_s(kBerlinAutumn2026), 3600);
}

TEST(Zone, ASkippedHourHasNoMoment) {
  const ZoneOf berlin("Europe/Berlin");
  EXPECT_TRUE(berlin.moments_of(kBerlinSpring2026 + 3600).empty());   // 02:00:00
  EXPECT_TRUE(berlin.moments_of(kBerlinSpring2026 + 7199).empty());   // 02:59:59
  EXPECT_EQ(berlin.moments_of(kBerlinSpring2026 + 3599).size(), 1u);  // 01:59:59
  EXPECT_EQ(berlin.moments_of(kBerlinSpring2026 + 7200), std::vector{kBerlinSpring2026});  // 03:00
}

TEST(Zone, ARepeatedHourHasTwoMoments) {
  const ZoneOf berlin("Europe/Berlin");
  const auto moments = berlin.moments_of(kBerlinAutumn2026 + 3600);  // 02:00:00
  EXPECT_EQ(moments, (std::vector{kBerlinAutumn2026 - 3600, kBerlinAutumn2026}));
  EXPECT_EQ(berlin.moments_of(kBerlinAutumn2026 + 7200).size(), 1u);  // 03:00:00
}

TEST(Zone, ADaySkippedWhole) {
  const ZoneOf apia("Pacific/Apia");  // went from UTC-10 to UTC+14 over 2011-12-30
  EXPECT_TRUE(apia.moments_of(1325203200 + 12 * 3600).empty());
}

TEST(Zone, EveryMomentIsFoundFromItsLocalTime) {
  for (const auto* name :
       {"Europe/Berlin", "America/New_York", "UTC", "Asia/Kathmandu", "Australia/Lord_Howe"}) {
    const ZoneOf zone(name);
    for (std::int64_t at = 1760000000; at < 1800000000; at += 1801 * 7) {
      const auto moments = zone.moments_of(at + zone.offset_s(at));
      EXPECT_NE(std::find(moments.begin(), moments.end(), at), moments.end()) << name << " " << at;
    }
  }
}

}  // namespace
}  // namespace mariner
