#include "logging/geometry_extraction.h"

#include <gtest/gtest.h>

#include <random>
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
using Verdict = GeometryExtraction::Verdict;

// Of the paper's mechanics, but with these zones.
SimulatedDrive::Options drive_of(const std::vector<Zone>& zones, std::uint64_t seed) {
  auto options = SimulatedDrive::deskstar(seed);
  options.geometry = *Geometry::make(
      {.sector_bytes = 512, .rotation = options.geometry.rotation(), .zones = zones});
  return options;
}

GeometryExtraction extract(TimedDisk& disk, std::uint64_t sectors,
                           std::uint64_t commands_max = GeometryExtraction::kCommandsMax) {
  const auto extraction = extract_geometry(
      disk, {.sectors = sectors, .sector_bytes = 512, .commands_max = commands_max});
  EXPECT_TRUE(extraction.has_value());
  return extraction.has_value() ? *extraction : GeometryExtraction{};
}

GeometryExtraction extract(const TimedDrive::Options& options) {
  TimedDrive disk(options);
  GeometryExtraction extraction = extract(disk, options.drive.geometry.end_sector());
  EXPECT_EQ(extraction.commands, disk.commands());
  return extraction;
}

void expect_exactly(const GeometryExtraction& extraction, const SimulatedDrive::Options& drive) {
  ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
  ASSERT_TRUE(extraction.geometry.has_value());
  EXPECT_EQ(extraction.geometry->rotation(), drive.geometry.rotation());
  EXPECT_EQ(std::vector(extraction.geometry->zones().begin(), extraction.geometry->zones().end()),
            std::vector(drive.geometry.zones().begin(), drive.geometry.zones().end()));
  EXPECT_EQ(*extraction.geometry, drive.geometry) << extraction.report;
  EXPECT_NEAR(static_cast<double>(extraction.track_skew.count()),
              static_cast<double>(drive.track_skew().count()), 100'000);
}

TEST(GeometryExtraction, FindsTheDriveOfThePaper) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto drive = SimulatedDrive::deskstar(seed);
    const GeometryExtraction extraction = extract({.drive = drive, .writes = seed % 2 == 0});
    expect_exactly(extraction, drive);
    EXPECT_LT(extraction.commands, GeometryExtraction::kCommandsMax / 7);
    EXPECT_NE(extraction.report.find("12 zones"), std::string::npos) << extraction.report;
  }
}

TEST(GeometryExtraction, FindsItThroughAHostThatNoticesLate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto drive = SimulatedDrive::deskstar(seed);
    expect_exactly(extract({.drive = drive, .late_max = microseconds(120)}), drive);
    expect_exactly(extract({.drive = drive,
                            .late_max = microseconds(40),
                            .hiccups = 0.08,
                            .hiccup_max = milliseconds(8)}),
                   drive);
  }
}

// One angle is measured wrong, consistently, at any time: what follows from it is looked at again.
TEST(GeometryExtraction, OneWrongAngleDoesNoHarm) {
  class Misdirects final : public TimedDisk {
   public:
    Misdirects(TimedDisk& disk, std::uint64_t from) : disk_(disk), from_(from) {}
    Result<Time> access(std::uint64_t sector) override {
      const bool second = sector > previous_;  // of the two that are compared
      previous_ = sector;
      ++commands_;
      const bool wrong = commands_ >= from_ && commands_ < from_ + 8 && second;
      return disk_.access(wrong && sector > 100 ? sector - 100 : sector);
    }

   private:
    TimedDisk& disk_;
    const std::uint64_t from_;
    std::uint64_t commands_ = 0;
    std::uint64_t previous_ = 0;
  };
  const auto drive = drive_of({{0, 400, 300}, {120'000, 300, 200}}, 5);
  TimedDrive undisturbed({.drive = drive});
  const std::uint64_t all = extract(undisturbed, drive.geometry.end_sector()).commands;
  for (std::uint64_t from = 400; from < all; from += 7) {
    SCOPED_TRACE(from);
    TimedDrive disk({.drive = drive});
    Misdirects misdirects(disk, from);
    const GeometryExtraction extraction = extract(misdirects, drive.geometry.end_sector());
    ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
    EXPECT_EQ(*extraction.geometry, drive.geometry) << extraction.report;
  }
}

// Zones of any lengths, growing ones and single tracks among them.
TEST(GeometryExtraction, FindsDrivesOfAnyZones) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto any = [&random](std::uint64_t least, std::uint64_t most) {
      return std::uniform_int_distribution(least, most)(random);
    };
    std::vector<Zone> zones;
    std::uint64_t sector = 0;
    std::uint32_t length = 0;
    const std::uint64_t count = any(1, 6);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint32_t next = length;
      while (next == length) next = static_cast<std::uint32_t>(any(60, 1200));
      length = next;
      // A track alone at the disk's beginning or end is said not to be found.
      const bool outermost = i == 0 || i + 1 == count;
      zones.push_back({sector, any(outermost ? 2 : 1, any(2, 5000)), length});
      sector = zones.back().end_sector();
    }
    const auto drive = drive_of(zones, seed);
    expect_exactly(extract({.drive = drive}), drive);
  }
}

// Behind the second zone the tracks go on as if it had never been: bisection alone jumps over it.
TEST(GeometryExtraction, AZoneBetweenTwoThatFitTogetherIsSeen) {
  const auto drive = drive_of({{0, 50, 300}, {15'000, 60, 200}, {27'000, 200, 300}}, 9);
  expect_exactly(extract({.drive = drive}), drive);
}

TEST(GeometryExtraction, APartialTrackAtTheEndBelongsToNone) {
  const auto drive = drive_of({{0, 100, 300}, {30'000, 50, 200}}, 3);
  TimedDrive disk({.drive = drive});
  const GeometryExtraction extraction = extract(disk, drive.geometry.end_sector() - 77);
  ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
  const std::vector<Zone> expected{{0, 100, 300}, {30'000, 49, 200}};
  EXPECT_EQ(std::vector(extraction.geometry->zones().begin(), extraction.geometry->zones().end()),
            expected);
  EXPECT_NE(extraction.report.find("123 of 39923 sectors"), std::string::npos) << extraction.report;
}

// A partition rarely begins with a track.
TEST(GeometryExtraction, APartialTrackAtTheBeginningBelongsToNone) {
  class Partition final : public TimedDisk {
   public:
    Partition(TimedDisk& disk, std::uint64_t first) : disk_(disk), first_(first) {}
    Result<Time> access(std::uint64_t sector) override { return disk_.access(first_ + sector); }

   private:
    TimedDisk& disk_;
    const std::uint64_t first_;
  };
  for (const std::uint64_t cut : {1, 2, 17, 100, 149, 150, 151, 222, 290, 299}) {
    SCOPED_TRACE(cut);
    TimedDrive drive({.drive = drive_of({{0, 100, 300}}, 3)});
    Partition partition(drive, cut);
    const GeometryExtraction extraction = extract(partition, 30'000 - cut);
    ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
    // Of a track that is cut near its middle or behind, the next one may be the first found.
    const Zone found = extraction.geometry->zones().front();
    EXPECT_EQ((found.first_sector + cut) % 300, 0u);
    EXPECT_GE(found.tracks, 98u);
    EXPECT_EQ(found.end_sector(), 30'000 - cut);
  }
}

TEST(GeometryExtraction, AFullTableEndsBeforeTheDisk) {
  std::vector<Zone> zones;
  for (std::uint32_t i = 0; i < Geometry::kZonesMax; ++i) {
    zones.push_back({zones.empty() ? 0 : zones.back().end_sector(), 20, 700 - 20 * i});
  }
  // Sixteen zones fit exactly.
  expect_exactly(extract({.drive = drive_of(zones, 1)}), drive_of(zones, 1));
  // No Geometry has the seventeenth, so this drive comes by its first zone again behind its end.
  class Repeats final : public TimedDisk {
   public:
    Repeats(const std::vector<Zone>& all)
        : drive_({.drive = drive_of(all, 1)}), end_(all.back().end_sector()) {}
    Result<Time> access(std::uint64_t sector) override { return drive_.access(sector % end_); }

   private:
    TimedDrive drive_;
    const std::uint64_t end_;
  } disk(zones);
  const std::uint64_t end = zones.back().end_sector();
  const GeometryExtraction extraction = extract(disk, 2 * end);
  ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
  EXPECT_EQ(extraction.geometry->zones().size(), Geometry::kZonesMax);
  EXPECT_EQ(extraction.geometry->end_sector(), end);
  EXPECT_NE(extraction.report.find("no room for more zones"), std::string::npos);
}

TEST(GeometryExtraction, ASpeedThatIsNotCustomaryIsTakenAsMeasured) {
  auto drive = drive_of({{0, 1000, 200}}, 4);
  const std::vector<Zone> zones{{0, 1000, 200}};
  drive.geometry =
      *Geometry::make({.sector_bytes = 512, .rotation = milliseconds(10), .zones = zones});
  const GeometryExtraction extraction = extract({.drive = drive});
  ASSERT_EQ(extraction.verdict, Verdict::kRotates) << extraction.report;
  EXPECT_NEAR(static_cast<double>(extraction.geometry->rotation().count()), 10e6, 5000);
  EXPECT_EQ(extraction.geometry->zones().front(), zones.front());
}

// ---- what has no geometry -----------------------------------------------------------------------

void expect_no_rotation(const LatencyDisk::Options& options, const std::string& words) {
  LatencyDisk disk(options);
  const GeometryExtraction extraction = extract(disk, 10'000'000);
  EXPECT_EQ(extraction.verdict, Verdict::kDoesNotRotate) << extraction.report;
  EXPECT_FALSE(extraction.geometry.has_value());
  EXPECT_NE(extraction.report.find(words), std::string::npos) << extraction.report;
  EXPECT_NE(extraction.report.find("append placement"), std::string::npos) << extraction.report;
}

TEST(GeometryExtraction, ADiskThatAnswersAtRandomDoesNotRotate) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    expect_no_rotation({.constant = microseconds(80), .random = microseconds(60), .seed = seed},
                       "no period");
    expect_no_rotation({.constant = milliseconds(3), .random = milliseconds(6), .seed = seed},
                       "no period");
    expect_no_rotation({.constant = milliseconds(8), .random = microseconds(800), .seed = seed},
                       "no period");
  }
}

TEST(GeometryExtraction, ADiskThatAnswersAtOnceDoesNotRotate) {
  expect_no_rotation({.constant = microseconds(90), .random = microseconds(1)}, "faster than");
  expect_no_rotation({.constant = milliseconds(100)}, "slower than");
  expect_no_rotation({}, "no period");  // the clock stands
}

TEST(GeometryExtraction, AConstantTimeIsNotARotation) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    expect_no_rotation({.constant = microseconds(8333), .random = microseconds(30), .seed = seed},
                       "a constant time");
  }
}

// Whatever lies between steady and random: no table.
TEST(GeometryExtraction, NoLatencyMakesATable) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    LatencyDisk disk({.constant = milliseconds(8), .random = microseconds(4 * seed), .seed = seed});
    const GeometryExtraction extraction = extract(disk, 1 + 50'000 * (seed % 3));
    EXPECT_NE(extraction.verdict, Verdict::kRotates) << seed << ": " << extraction.report;
  }
}

TEST(GeometryExtraction, ADriveWithoutSkewIsUnclear) {
  auto drive = drive_of({{0, 1000, 200}}, 4);
  drive.track_switch = microseconds(0);
  drive.settle = microseconds(100);
  const GeometryExtraction extraction = extract({.drive = drive});
  EXPECT_EQ(extraction.verdict, Verdict::kUnclear);
  EXPECT_FALSE(extraction.geometry.has_value());
  EXPECT_NE(extraction.report.find("no skew"), std::string::npos) << extraction.report;
  EXPECT_NE(extraction.report.find("append placement"), std::string::npos);
}

TEST(GeometryExtraction, StopsAtTheBoundOfCommands) {
  const auto drive = SimulatedDrive::deskstar(1);
  for (const std::uint64_t most : {1, 65, 66, 500, 3000}) {
    TimedDrive disk({.drive = drive});
    const GeometryExtraction extraction = extract(disk, drive.geometry.end_sector(), most);
    EXPECT_EQ(extraction.verdict, Verdict::kUnclear) << most;
    EXPECT_FALSE(extraction.geometry.has_value());
    EXPECT_EQ(disk.commands(), most);
    EXPECT_EQ(extraction.commands, most);
  }
}

TEST(GeometryExtraction, HandsOnWhatTheDiskReports) {
  const auto drive = SimulatedDrive::deskstar(1);
  for (const std::uint64_t number : {1, 40, 100, 2000}) {
    TimedDrive disk({.drive = drive, .fail_at = number});
    const auto extraction =
        extract_geometry(disk, {.sectors = drive.geometry.end_sector(), .sector_bytes = 512});
    ASSERT_FALSE(extraction.has_value());
    EXPECT_EQ(extraction.error().code, ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace mariner::logging
