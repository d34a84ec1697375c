#include "server/client/time_spec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "server/client/time_text.h"
#include "tests/server/client/zones.h"

namespace mariner {
namespace {

constexpr VersionTime kSpecNow{1795181525'123456789};  // 2026-11-20T13:32:05.123456789Z, a Friday

struct Case {
  const char* zone;
  const char* text;
  const char* utc;  // the moment, or the part of the error's message that matters
};

std::string read(const Case& c, VersionTime now = kSpecNow) {
  const ZoneOf zone(c.zone);
  const auto spec = parse_time(c.text, {now, zone});
  if (!spec) return spec.error().message;
  if (const auto* time = std::get_if<VersionTime>(&*spec)) return format_utc(*time);
  if (const auto* sequence = std::get_if<SequenceNumber>(&*spec))
    return "#" + std::to_string(sequence->value);
  if (const auto* mark = std::get_if<MarkName>(&*spec)) return "mark " + mark->value;
  return "now";
}

TEST(TimeSpec, EveryForm) {
  const Case cases[] = {
      // RFC 3339
      {"UTC", "2026-11-20T14:32:05Z", "2026-11-20T14:32:05.000000000Z"},
      {"UTC", "2026-11-20t14:32:05z", "2026-11-20T14:32:05.000000000Z"},
      {"UTC", "2026-11-20 14:32:05Z", "2026-11-20T14:32:05.000000000Z"},
      {"Europe/Berlin", "2026-11-20T14:32:05.123456789+01:00", "2026-11-20T13:32:05.123456789Z"},
      {"Europe/Berlin", "2026-11-20T14:32:05-05:30", "2026-11-20T20:02:05.000000000Z"},
      {"UTC", "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000000Z"},
      {"UTC", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000000Z"},
      {"UTC", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000000000Z"},
      // local
      {"Europe/Berlin", "2026-11-20 14:32:05", "2026-11-20T13:32:05.000000000Z"},
      {"Europe/Berlin", "2026-11-20T14:32:05", "2026-11-20T13:32:05.000000000Z"},
      {"Europe/Berlin", "2026-11-20 14:32:05.000000001", "2026-11-20T13:32:05.000000001Z"},
      {"Europe/Berlin", "2026-11-20 14:32:05.5", "2026-11-20T13:32:05.500000000Z"},
      {"Europe/Berlin", "2026-11-20 14:32", "2026-11-20T13:32:00.000000000Z"},
      {"America/New_York", "2026-07-04 09:00:00", "2026-07-04T13:00:00.000000000Z"},
      // the last such moment
      {"Europe/Berlin", "14:32:05", "2026-11-20T13:32:05.000000000Z"},
      {"Europe/Berlin", "14:32:05.123456789", "2026-11-20T13:32:05.123456789Z"},
      {"Europe/Berlin", "14:32:05.12345679", "2026-11-19T13:32:05.123456790Z"},
      {"Europe/Berlin", "14:32:06", "2026-11-19T13:32:06.000000000Z"},
      {"Europe/Berlin", "00:00:00", "2026-11-19T23:00:00.000000000Z"},
      {"Europe/Berlin", "14:30", "2026-11-20T13:30:00.000000000Z"},
      {"America/New_York", "23:59:59", "2026-11-20T04:59:59.000000000Z"},
      // relative
      {"UTC", "-10m", "2026-11-20T13:22:05.123456789Z"},
      {"UTC", "-1h30m", "2026-11-20T12:02:05.123456789Z"},
      {"UTC", "-1ns", "2026-11-20T13:32:05.123456788Z"},
      {"UTC", "-1w", "2026-11-13T13:32:05.123456789Z"},
      {"UTC", "10 minutes ago", "2026-11-20T13:22:05.123456789Z"},
      {"UTC", "1 minute ago", "2026-11-20T13:31:05.123456789Z"},
      {"UTC", "an hour ago", "2026-11-20T12:32:05.123456789Z"},
      {"UTC", "2 weeks ago", "2026-11-06T13:32:05.123456789Z"},
      {"UTC", "10m ago", "2026-11-20T13:22:05.123456789Z"},
      {"Europe/Berlin", "yesterday", "2026-11-18T23:00:00.000000000Z"},
      {"America/New_York", "yesterday", "2026-11-19T05:00:00.000000000Z"},
      {"UTC", "now", "now"},
      // names and numbers
      {"UTC", "mark:pre-upgrade", "mark pre-upgrade"},
      {"UTC", "mark:a:b@c", "mark a:b@c"},
      {"UTC", "#0", "#0"},
      {"UTC", "#18446744073709551615", "#18446744073709551615"},
  };
  for (const auto& c : cases) EXPECT_EQ(read(c), c.utc) << c.zone << " " << c.text;
}

TEST(TimeSpec, ClockChanges) {
  const Case cases[] = {
      // Berlin 2026: forward on 03-29 at 02:00, back on 10-25 at 03:00
      {"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59.000000000Z"},
      {"Europe/Berlin", "2026-03-29 02:00:00", "does not exist"},
      {"Europe/Berlin", "2026-03-29 02:59:59.999999999", "does not exist"},
      {"Europe/Berlin", "2026-03-29 03:00:00", "2026-03-29T01:00:00.000000000Z"},
      {"Europe/Berlin", "2026-10-25 01:59:59", "2026-10-24T23:59:59.000000000Z"},
      {"Europe/Berlin", "2026-10-25 02:30:00",
       "write 2026-10-25T02:30:00.000000000+02:00 or 2026-10-25T02:30:00.000000000+01:00"},
      {"Europe/Berlin", "2026-10-25 02:30:00+02:00", "2026-10-25T00:30:00.000000000Z"},
      {"Europe/Berlin", "2026-10-25 02:30:00+01:00", "2026-10-25T01:30:00.000000000Z"},
      {"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00.000000000Z"},
      // New York 2026: forward on 03-08 at 02:00, back on 11-01 at 02:00
      {"America/New_York", "2026-03-08 01:59:59", "2026-03-08T06:59:59.000000000Z"},
      {"America/New_York", "2026-03-08 02:15:00", "does not exist"},
      {"America/New_York", "2026-03-08 03:00:00", "2026-03-08T07:00:00.000000000Z"},
      {"America/New_York", "2026-11-01 00:59:59", "2026-11-01T04:59:59.000000000Z"},
      {"America/New_York", "2026-11-01 01:00:00",
       "write 2026-11-01T01:00:00.000000000-04:00 or 2026-11-01T01:00:00.000000000-05:00"},
      {"America/New_York", "2026-11-01 02:00:00", "2026-11-01T07:00:00.000000000Z"},
  };
  for (const auto& c : cases) {
    const auto text = read(c);
    EXPECT_NE(text.find(c.utc), std::string::npos) << c.zone << " " << c.text << ": " << text;
  }
}

TEST(TimeSpec, TheLastMomentAroundAClockChange) {
  const VersionTime after_autumn{1792893600'000000000};  // 2026-10-25T02:00:00Z, 03:00 in Berlin
  // The clocks showed 02:30 twice this night: the last is the second.
  EXPECT_EQ(read({"Europe/Berlin", "02:30:00", ""}, after_autumn),
            "2026-10-25T01:30:00.000000000Z");
  const VersionTime between{1792888200'000000000};  // 2026-10-25T00:30:00Z, the first 02:30
  EXPECT_EQ(read({"Europe/Berlin", "02:30:00", ""}, between), "2026-10-25T00:30:00.000000000Z");
  const VersionTime after_spring{1774774800'000000000};  // 2026-03-29T09:00:00Z
  // Never shown on the 29th: the last is a day before.
  EXPECT_EQ(read({"Europe/Berlin", "02:30:00", ""}, after_spring),
            "2026-03-28T01:30:00.000000000Z");
}

TEST(TimeSpec, YesterdayInAZoneThatChangesAtMidnight) {
  // Cairo, Friday 2026-04-24: 00:00 becomes 01:00.
  const VersionTime next_day{1777118400'000000000};  // 2026-04-25T12:00:00Z
  EXPECT_EQ(read({"Africa/Cairo", "yesterday", ""}, next_day), "2026-04-23T22:00:00.000000000Z");
}

TEST(TimeSpec, WrongTimesAreRefused) {
  for (const auto* text : {"",
                           " ",
                           "tomorrow",
                           "2026-11-20",
                           "2026-13-01 00:00:00",
                           "2026-02-29 00:00:00",
                           "2026-02-30T00:00:00Z",
                           "2026-11-20 24:00:00",
                           "2026-11-20 23:60:00",
                           "2026-11-20T23:59:60Z",
                           "2026-11-20T23:59:59+0100",
                           "2026-11-20T23:59:59+24:00",
                           "2026-11-20T23:59:59Z ",
                           "2026-11-20 23:59:59.",
                           "2026-11-20 23:59:59.1234567890",
                           "20261120T235959Z",
                           "26-11-20 10:00:00",
                           "1969-12-31T23:59:59Z",
                           "2600-01-01T00:00:00Z",
                           "9999-12-31 23:59:59",
                           "25:00:00",
                           "14:32:",
                           "14:3",
                           "14:32:05Z",
                           "-",
                           "-10",
                           "--10m",
                           "-m",
                           "-100w1000w",
                           "-20000w",
                           "minutes ago",
                           " ago",
                           "10 ago",
                           "ten minutes ago",
                           "10 months ago",
                           "99999999999999999999 days ago",
                           "9999999999 weeks ago",
                           "mark:",
                           "#",
                           "#-1",
                           "#1x",
                           "#18446744073709551616",
                           "Now",
                           "+10m",
                           "2026-11-20_10:00:00"}) {
    const ZoneOf zone("Europe/Berlin");
    const auto spec = parse_time(text, {kSpecNow, zone});
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(spec.error().message.find(std::string("\"") + text + "\""), std::string::npos)
        << spec.error().message;
  }
}

TEST(TimeSpec, EveryMomentIsReadBackFromItsText) {
  const ZoneOf zone("Europe/Berlin");
  EXPECT_TRUE(rc::check([&zone] {
    const VersionTime time{*rc::gen::inRange<std::uint64_t>(0, 7'000'000'000'000'000'000)};
    for (const auto& text : {format_utc(time), format_local(time, zone)}) {
      const auto spec = parse_time(text, {kSpecNow, zone});
      RC_ASSERT(spec.has_value());
      RC_ASSERT(*spec == TimeSpec(time));
    }
  }));
}

TEST(TimeSpec, ATimeOfDayIsNeverInTheFuture) {
  const ZoneOf zone("America/New_York");
  EXPECT_TRUE(rc::check([&zone] {
    const VersionTime now{
        *rc::gen::inRange<std::uint64_t>(1'700'000'000'000'000'000, 1'900'000'000'000'000'000)};
    const auto text =
        format_utc(VersionTime{*rc::gen::inRange<std::uint64_t>(0, 86'400'000'000'000)})
            .substr(11, 18);
    const auto spec = parse_time(text, {now, zone});
    RC_ASSERT(spec.has_value());
    const auto at = std::get<VersionTime>(*spec);
    RC_ASSERT(at <= now);
    RC_ASSERT(now.ns - at.ns <= 49ull * 3600 * 1'000'000'000);
    RC_ASSERT(format_local(at, zone).substr(11, 18) == text);
  }));
}

TEST(TimeSpec, NoTextBreaksTheParser) {
  const ZoneOf zone("Europe/Berlin");
  EXPECT_TRUE(rc::check([&zone](const std::string& text) {
    (void)parse_time(text, {kSpecNow, zone});
    (void)parse_time("2026-" + text, {kSpecNow, zone});
    (void)parse_time(text + " ago", {kSpecNow, zone});
  }));
}

TEST(TimeSpec, ObjectsAreSplitAtTheFirstAt) {
  EXPECT_EQ(split_object("db1").object, "db1");
  EXPECT_FALSE(split_object("db1").time);
  EXPECT_EQ(split_object("db1@-10m").object, "db1");
  EXPECT_EQ(split_object("db1@-10m").time, "-10m");
  EXPECT_EQ(split_object("db1@mark:a@b").time, "mark:a@b");
  EXPECT_EQ(split_object("db1@").time, "");
  EXPECT_EQ(split_object("@now").object, "");
}

}  // namespace
}  // namespace mariner
