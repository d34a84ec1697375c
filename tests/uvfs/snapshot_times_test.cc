#include "uvfs/snapshot_times.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kSecond_ns = 1'000'000'000;

std::vector<std::string> names(const std::string& oldest, const std::string& newest) {
  std::vector<std::string> all;
  for (const VersionTime each :
       snapshot_times(*parse_snapshot_name(oldest), *parse_snapshot_name(newest))) {
    all.push_back(snapshot_name(each));
  }
  return all;
}

TEST(SnapshotTimesTest, AreCloserTheNewerTheyAre) {
  EXPECT_EQ(names("@GMT-2026.11.20-11.57.00", "@GMT-2026.11.20-14.12.30"),
            (std::vector<std::string>{
                "@GMT-2026.11.20-12.00.00", "@GMT-2026.11.20-13.00.00", "@GMT-2026.11.20-13.15.00",
                "@GMT-2026.11.20-13.20.00", "@GMT-2026.11.20-13.25.00", "@GMT-2026.11.20-13.30.00",
                "@GMT-2026.11.20-13.35.00", "@GMT-2026.11.20-13.40.00", "@GMT-2026.11.20-13.45.00",
                "@GMT-2026.11.20-13.50.00", "@GMT-2026.11.20-13.55.00", "@GMT-2026.11.20-14.00.00",
                "@GMT-2026.11.20-14.05.00", "@GMT-2026.11.20-14.10.00"}));
  const auto month = names("@GMT-2026.07.01-00.00.01", "@GMT-2026.11.20-14.12.30");
  const auto has = [&](const char* name) { return std::ranges::count(month, name) == 1; };
  EXPECT_TRUE(has("@GMT-2026.11.18-15.00.00"));
  EXPECT_FALSE(has("@GMT-2026.11.18-14.00.00"));  // more than two days before
  EXPECT_TRUE(has("@GMT-2026.11.18-00.00.00"));
  EXPECT_TRUE(has("@GMT-2026.09.22-00.00.00"));
  EXPECT_TRUE(has("@GMT-2026.09.14-00.00.00"));  // a Monday
  EXPECT_FALSE(has("@GMT-2026.09.15-00.00.00"));
  EXPECT_EQ(month.front(), "@GMT-2026.07.06-00.00.00");
  EXPECT_TRUE(std::ranges::is_sorted(month));
}

TEST(SnapshotTimesTest, AreBounded) {
  EXPECT_EQ(names("@GMT-1970.01.01-00.00.00", "@GMT-2026.11.20-14.12.30").size(),
            kSnapshotTimesMax);
  EXPECT_EQ(names("@GMT-2026.11.20-14.12.31", "@GMT-2026.11.20-14.14.59").size(), 0u);
  EXPECT_EQ(names("@GMT-2026.11.20-14.15.00", "@GMT-2026.11.20-14.12.30").size(), 0u);
  EXPECT_EQ(names("@GMT-1970.01.01-00.00.00", "@GMT-1970.01.01-00.06.00"),
            (std::vector<std::string>{"@GMT-1970.01.01-00.00.00", "@GMT-1970.01.01-00.05.00"}));
}

TEST(SnapshotTimesTest, WhatTheyShowIsNotBehindThem) {
  EXPECT_EQ(snapshot_name({1'795'617'132 * kSecond_ns}), "@GMT-2026.11.25-14.32.12");
  EXPECT_EQ(snapshot_name({1'795'617'132 * kSecond_ns + 1}), "@GMT-2026.11.25-14.32.13");
}

TEST(SnapshotTimesTest, NamesAreReadStrictly) {
  EXPECT_EQ(parse_snapshot_name("@GMT-2026.11.25-14.32.12")->ns, 1'795'617'132 * kSecond_ns);
  for (const char* name :
       {"", "@GMT-", "GMT-2026.11.25-14.32.12", "@GMT-2026.11.25-14.32.1",
        "@GMT-2026.11.25-14.32.123", "@GMT-2026.02.30-00.00.00", "@GMT-2026.11.25-24.00.00",
        "@GMT-2026.11.25-14.60.00", "@GMT-2026.11.25 14.32.12", "@GMT-2026.11.+5-14.32.12",
        "@GMT-2026.1a.25-14.32.12", "@GMT-1969.12.31-23.59.59", "@GMT-9999.12.31-23.59.59"}) {
    EXPECT_FALSE(parse_snapshot_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace mariner::uvfs
