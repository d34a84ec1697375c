#include "server/client/retention.h"

#include <gtest/gtest.h>

#include <string>

#include "server/client/time_text.h"

namespace mariner {
namespace {

constexpr VersionTime kNow{1795181525'123456789};  // Friday, 2026-11-20T13:32:05Z

std::string times(const Retention& retention) {
  std::string out;
  for (const RetainedTime& each : retained_times(retention, kNow)) {
    out += format_utc(each.time).substr(0, 16) + " " + each.period + "\n";
  }
  return out;
}

TEST(Retention, IsReadAndWritten) {
  const Result<Retention> read = parse_retention(" hourly = 24,daily=30, yearly=3 ");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (Retention{.hourly = 24, .daily = 30, .yearly = 3}));
  EXPECT_EQ(retention_text(*read), "hourly=24, daily=30, yearly=3");
  EXPECT_EQ(*parse_retention(retention_text(*read)), *read);
  EXPECT_TRUE(parse_retention("none")->none());
  EXPECT_EQ(retention_text({}), "none");
}

TEST(Retention, WhatMakesNoSenseIsRefusedWithAReason) {
  for (const auto& [text, why] : {std::pair{"", "it keeps nothing"},
                                  {"hourly", "\"hourly\" says no number"},
                                  {"hourly=-1", "\"-1\" is no number"},
                                  {"hourly=1x", "\"1x\" is no number"},
                                  {"minutely=5", "there is no \"minutely\""},
                                  {"daily=2,daily=3", "daily stands there twice"},
                                  {"daily=0", "it keeps nothing"},
                                  {"hourly=900, daily=900", "1800 moments are more than 1000"},
                                  {"hourly=5000", "is no number from 0 to 1000"}}) {
    const Result<Retention> read = parse_retention(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
  }
}

TEST(Retention, KeepsTheEndsOfPeriods) {
  EXPECT_EQ(times({.hourly = 3}),
            "2026-11-20T11:00 hourly\n2026-11-20T12:00 hourly\n2026-11-20T13:00 hourly\n");
  EXPECT_EQ(times({.daily = 2}), "2026-11-19T00:00 daily\n2026-11-20T00:00 daily\n");
  EXPECT_EQ(times({.weekly = 2}), "2026-11-09T00:00 weekly\n2026-11-16T00:00 weekly\n");
  EXPECT_EQ(times({.monthly = 3}),
            "2026-09-01T00:00 monthly\n2026-10-01T00:00 monthly\n2026-11-01T00:00 monthly\n");
  EXPECT_EQ(times({.yearly = 2}), "2025-01-01T00:00 yearly\n2026-01-01T00:00 yearly\n");
}

// So a moment that a month keeps was kept for its hour and its day before.
TEST(Retention, TheEndOfAMonthIsThatOfADayAndAnHour) {
  EXPECT_EQ(times({.daily = 20, .monthly = 1}).substr(0, 24), "2026-11-01T00:00 monthly");
  const std::string all = times({.hourly = 500, .daily = 21, .weekly = 3, .monthly = 2});
  EXPECT_NE(all.find("2026-11-09T00:00 weekly\n"), std::string::npos);
  EXPECT_EQ(all.find("2026-11-09T00:00 daily\n"), std::string::npos);
}

// Any moment of the shortest period that ends then may stand for it.
TEST(Retention, SaysWhereThePeriodBegins) {
  std::vector<RetainedTime> all = retained_times({.hourly = 2, .monthly = 1}, kNow);
  ASSERT_EQ(all.size(), 3U);
  for (const RetainedTime& each : all) {
    EXPECT_EQ(each.time.ns - each.after.ns, 3600 * 1'000'000'000ull);
  }
  all = retained_times({.weekly = 1, .monthly = 1}, kNow);  // of 16 and 1 November
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].time.ns - all[0].after.ns, 6 * 86400 * 1'000'000'000ull) << "26 October";
  EXPECT_EQ(all[1].time.ns - all[1].after.ns, 7 * 86400 * 1'000'000'000ull);
  EXPECT_EQ(retained_times({.yearly = 100}, kNow).front().after.ns, 0U);
}

TEST(Retention, NothingIsBeforeTheBeginningOfTime) {
  EXPECT_EQ(retained_times({.yearly = 100}, kNow).size(), 56U);
}

}  // namespace
}  // namespace mariner
