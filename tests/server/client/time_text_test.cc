#include "server/client/time_text.h"

#include <gtest/gtest.h>

#include "tests/server/client/zones.h"

namespace mariner {
namespace {

constexpr VersionTime kTime{1795181525'123456789};  // 2026-11-20T13:32:05.123456789Z

TEST(TimeText, Utc) {
  EXPECT_EQ(format_utc(kTime), "2026-11-20T13:32:05.123456789Z");
  EXPECT_EQ(format_utc(VersionTime{0}), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(format_utc(VersionTime{~0ull}), "2554-07-21T23:34:33.709551615Z");
}

TEST(TimeText, LocalWithItsOffset) {
  EXPECT_EQ(format_local(kTime, ZoneOf("Europe/Berlin")), "2026-11-20T14:32:05.123456789+01:00");
  EXPECT_EQ(format_local(kTime, ZoneOf("America/New_York")), "2026-11-20T08:32:05.123456789-05:00");
  EXPECT_EQ(format_local(kTime, ZoneOf("Asia/Kathmandu")), "2026-11-20T19:17:05.123456789+05:45");
  EXPECT_EQ(format_local(kTime, ZoneOf("America/St_Johns")), "2026-11-20T10:02:05.123456789-03:30");
}

TEST(TimeText, ShortLocal) {
  EXPECT_EQ(format_local_short(kTime, ZoneOf("Europe/Berlin")), "2026-11-20 14:32:05");
}

}  // namespace
}  // namespace mariner
