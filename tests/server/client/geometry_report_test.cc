#include "server/client/geometry_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace mariner::client {
namespace {

using logging::Geometry;
using logging::GeometryExtraction;
using logging::Zone;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Verdict = GeometryExtraction::Verdict;

GeometryReport found() {
  constexpr std::array<Zone, 2> kZones{{{0, 100, 300}, {30'000, 50, 200}}};
  const auto geometry = Geometry::make(
      {.sector_bytes = 512, .rotation = std::chrono::nanoseconds(8'333'333), .zones = kZones});
  return {.device = "/dev/x",
          .sectors = 40'000,
          .sector_bytes = 512,
          .extraction = {.verdict = Verdict::kRotates,
                         .geometry = *geometry,
                         .track_skew = std::chrono::nanoseconds(1'445'000),
                         .commands = 900,
                         .report = "It turns."}};
}

GeometryReport none(Verdict verdict) {
  return {.device = "/dev/x",
          .sectors = 40'000,
          .sector_bytes = 512,
          .extraction = {.verdict = verdict, .commands = 65, .report = "It does not."}};
}

TEST(GeometryReport, ATableForPeople) {
  const GeometryReport report = found();
  EXPECT_EQ(to_text(report),
            "It turns.\n"
            "\n"
            "zone    first sector      tracks  sectors per track\n"
            "   0               0         100                300\n"
            "   1           30000          50                200\n"
            "\n"
            "Sectors have 512 bytes.\n");
  EXPECT_EQ(exit_code_of(report), 0);
}

TEST(GeometryReport, ATableForPrograms) {
  EXPECT_EQ(to_json(found()),
            R"({"schema":1,"device":"/dev/x","verdict":"rotates","report":"It turns.",)"
            R"("commands":"900","sectors":"40000","sector_bytes":512,"rotation_ns":"8333333",)"
            R"("track_skew_ns":"1445000","zones":[)"
            R"({"first_sector":"0","tracks":"100","sectors_per_track":300},)"
            R"({"first_sector":"30000","tracks":"50","sectors_per_track":200}]})"
            "\n");
}

TEST(GeometryReport, AVerdictWithoutATable) {
  const GeometryReport report = none(Verdict::kDoesNotRotate);
  EXPECT_EQ(to_text(report), "It does not.\n");
  EXPECT_THAT(to_json(report), HasSubstr(R"("verdict":"does-not-rotate")"));
  EXPECT_THAT(to_json(report), EndsWith("\"sector_bytes\":512}\n"));
  EXPECT_THAT(to_json(none(Verdict::kUnclear)), HasSubstr(R"("verdict":"unclear")"));
  EXPECT_EQ(exit_code_of(report), 3);
  EXPECT_EQ(exit_code_of(none(Verdict::kUnclear)), 3);
}

TEST(GeometryReport, NamesAreEscaped) {
  GeometryReport report = none(Verdict::kUnclear);
  report.device = "a\"b\\c\n\xff";
  EXPECT_THAT(to_json(report), HasSubstr("\"a\\\"b\\\\c\\u000a\xEF\xBF\xBD\""));
}

TEST(GeometryReport, AFileHasNoGeometryOfItsOwn) {
  GeometryReport report = found();
  report.is_file = true;
  report.qualify();
  EXPECT_EQ(report.extraction.verdict, Verdict::kUnclear);
  EXPECT_EQ(exit_code_of(report), 3);
  EXPECT_THAT(to_text(report), HasSubstr("name the block device"));
}

TEST(GeometryReport, WhoOnlyReadMayHaveSeenABuffer) {
  GeometryReport read = none(Verdict::kDoesNotRotate);
  read.qualify();
  EXPECT_THAT(to_text(read), HasSubstr("--write"));
  GeometryReport rewritten = none(Verdict::kDoesNotRotate);
  rewritten.rewritten = true;
  rewritten.qualify();
  EXPECT_EQ(to_text(rewritten), "It does not.\n");
  GeometryReport file = none(Verdict::kDoesNotRotate);
  file.is_file = true;
  file.qualify();
  EXPECT_EQ(to_text(file), "It does not.\n");
  GeometryReport table = found();
  table.qualify();
  EXPECT_EQ(to_text(table), to_text(found()));
}

}  // namespace
}  // namespace mariner::client
