#include "server/client/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace mariner {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, SizesInEveryUnit) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"1K", 1024},
      {"1KiB", 1024},
      {"1kib", 1024},
      {"1KB", 1000},
      {"500G", 500ull << 30},
      {"1GiB", 1ull << 30},
      {"2TB", 2'000'000'000'000},
      {"3P", 3ull << 50},
      {"18446744073709551615", ~0ull},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size) << text << ": " << size.error().message;
    EXPECT_EQ(size->bytes, bytes) << text;
  }
}

TEST(Quantity, WrongSizesAreRefused) {
  for (const auto* text : {"", "G", "-1", "+1", "1.5G", "1 G", "1X", "1GG", "1Gi", "1iB", "0x10",
                           "1Bi", "18446744073709551616", "16384P", "99999999999999999999"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Quantity, DurationsInEveryUnit) {
  const std::pair<const char*, std::chrono::nanoseconds> cases[] = {
      {"0s", 0ns},
      {"5ns", 5ns},
      {"200us", 200us},
      {"15ms", 15ms},
      {"90s", 90s},
      {"10m", 10min},
      {"48h", 48h},
      {"3d", 72h},
      {"2w", 336h},
      {"1h30m", 90min},
      {"1d12h30m1s5ms6us7ns", 36h + 30min + 1s + 5ms + 6us + 7ns},
  };
  for (const auto& [text, duration] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, duration) << text;
  }
}

TEST(Quantity, WrongDurationsAreRefused) {
  for (const auto* text : {"", "5", "s", "-5s", "1.5h", "5 m", "5M", "5x", "30m1h", "1h1h", "1h30",
                           "99999w", "9223372036854775808ns", "18446744073709551616s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Quantity, SizesReadWell) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1 KiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(100ull << 30), "100 GiB");
  EXPECT_EQ(format_size((1ull << 20) + (1ull << 18)), "1.25 MiB");
  EXPECT_EQ(format_size(~0ull), "16384 PiB");
}

TEST(Quantity, DurationsReadWell) {
  EXPECT_EQ(format_duration(0ns), "0s");
  EXPECT_EQ(format_duration(72h), "3d");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(200us), "200us");
  EXPECT_EQ(format_duration(-10min), "-10m");
  EXPECT_EQ(format_duration(std::chrono::nanoseconds::min()), "-15250w");
}

TEST(Quantity, EveryDurationIsReadBackExactly) {
  EXPECT_TRUE(rc::check([] {
    const auto ns = std::chrono::nanoseconds(*rc::gen::inRange<std::int64_t>(0, INT64_MAX));
    const auto read = parse_duration(format_duration(ns));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == ns);
  }));
}

TEST(Quantity, NoTextBreaksTheParsers) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    (void)parse_size(text);
    (void)parse_duration(text);
  }));
}

}  // namespace
}  // namespace mariner
