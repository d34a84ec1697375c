#include "server/volume/write_pace.h"

#include <gtest/gtest.h>

namespace mariner::volume {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kRate = 1'000'000;

TEST(WritePace, WithoutARateNothingWaits) {
  WritePace pace;
  EXPECT_EQ(pace.grant(12345, seconds(1)), WritePace::kUnlimited);
  pace.set(kRate, 12345, seconds(1));
  EXPECT_EQ(pace.grant(12345, seconds(1)), 12345u);
  pace.set(std::nullopt, 12345, seconds(2));
  EXPECT_EQ(pace.grant(12345, seconds(2)), WritePace::kUnlimited);
}

TEST(WritePace, WhatIsLetInOverATimeIsTheRate) {
  WritePace pace;
  WritePace::Duration now = seconds(5);
  constexpr std::uint64_t kFirst = 1u << 30;
  constexpr std::uint64_t kWrite = 65536;
  std::uint64_t stamped = kFirst;
  pace.set(kRate, stamped, now);
  for (int turn = 0; turn < 1000; ++turn) {
    now += milliseconds(10);
    while (stamped < pace.grant(stamped, now)) stamped += kWrite;
  }
  EXPECT_GE(stamped - kFirst, 10'000'000u);
  EXPECT_LE(stamped - kFirst, 10'000'000u + kWrite);
}

TEST(WritePace, WhoWasBelowTheRateCatchesUpALittle) {
  WritePace pace;
  pace.set(kRate, 0, seconds(1));
  EXPECT_EQ(pace.grant(0, seconds(100)), 1'000'000u);
  EXPECT_EQ(pace.grant(1'000'000, seconds(100)), 1'000'000u) << "and no more at once";
  EXPECT_EQ(pace.grant(1'000'000, seconds(100) + milliseconds(10)), 1'010'000u);
}

TEST(WritePace, ARateThatChangesCountsFromThenOn) {
  WritePace pace;
  pace.set(kRate, 0, seconds(1));
  pace.set(kRate / 2, 0, seconds(1) + milliseconds(500));
  EXPECT_EQ(pace.grant(500'000, seconds(2) + milliseconds(500)), 1'000'000u);
  pace.set(kRate / 100, 1'000'000, seconds(2) + milliseconds(500));
  EXPECT_EQ(pace.grant(1'000'000, seconds(4) + milliseconds(500)), 1'010'000u) << "no more credit";
}

}  // namespace
}  // namespace mariner::volume
