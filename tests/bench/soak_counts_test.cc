#include "tests/bench/soak_counts.h"

#include <gtest/gtest.h>

namespace mariner::bench {
namespace {

using std::chrono::seconds;
using Time = SoakCounts::Time;
using Numbers = std::vector<std::uint64_t>;

constexpr Time kBegin{seconds(100)};

TEST(SoakCounts, OperationsCountInTheWindowInWhichTheyEnd) {
  SoakCounts counts(2);
  counts.begin(kBegin, seconds(10), seconds(25));
  counts.completed(0, false, kBegin, kBegin);
  counts.completed(1, true, kBegin, kBegin + seconds(9));
  counts.completed(1, true, kBegin, kBegin + seconds(10));
  counts.completed(0, true, kBegin, kBegin + seconds(24));  // in a window that is not whole
  ASSERT_EQ(counts.windows().size(), 2u);
  EXPECT_EQ(counts.windows()[0], (Numbers{1, 1}));
  EXPECT_EQ(counts.windows()[1], (Numbers{0, 1}));
  EXPECT_EQ(counts.operations(), (Numbers{2, 2}));
  EXPECT_EQ(counts.reads().total(), 1u);
  EXPECT_EQ(counts.writes().total(), 3u);
}

TEST(SoakCounts, NothingCountsBeforeOrBehind) {
  SoakCounts counts(1);
  counts.completed(0, false, kBegin, kBegin);
  counts.begin(kBegin, seconds(10), seconds(20));
  counts.completed(0, false, kBegin - seconds(2), kBegin - seconds(1));
  counts.completed(0, false, kBegin, kBegin + seconds(20));
  EXPECT_EQ(counts.operations(), Numbers{0});
  EXPECT_EQ(counts.reads().total(), 0u);
}

TEST(SoakCounts, ThoseThatComeAndGoAreCountedApart) {
  SoakCounts counts(1);
  counts.begin(kBegin, seconds(10), seconds(20));
  counts.completed(std::nullopt, false, kBegin, kBegin + seconds(1));
  EXPECT_EQ(counts.others(), 1u);
  EXPECT_EQ(counts.operations(), Numbers{0});
  EXPECT_EQ(counts.reads().total(), 1u);
}

TEST(SoakCounts, TheLongestSilenceOfAnyIsKept) {
  SoakCounts counts(2);
  counts.begin(kBegin, seconds(5), seconds(10));
  counts.completed(0, false, kBegin, kBegin + seconds(6));
  counts.completed(1, false, kBegin, kBegin + seconds(1));
  counts.completed(1, false, kBegin, kBegin + seconds(8));
  counts.completed(1, false, kBegin, kBegin + seconds(9));
  EXPECT_EQ(counts.silence_max(), seconds(7));
}

TEST(SoakCounts, ASilenceThatLastsToTheEndCounts) {
  SoakCounts counts(1);
  counts.begin(kBegin, seconds(5), seconds(10));
  counts.completed(0, false, kBegin, kBegin + seconds(2));
  EXPECT_EQ(counts.silence_max(), seconds(8));
}

TEST(SoakCounts, WhatWentWrongIsCountedInFullAndToldInPart) {
  SoakCounts counts(1);
  for (std::size_t i = 0; i < SoakCounts::kToldMax; ++i) counts.mismatch(std::to_string(i));
  counts.failure("one too many");
  EXPECT_EQ(counts.mismatches(), SoakCounts::kToldMax);
  EXPECT_EQ(counts.failures(), 1u);
  EXPECT_EQ(counts.told().size(), SoakCounts::kToldMax);
  EXPECT_EQ(counts.told()[0], "0");
}

}  // namespace
}  // namespace mariner::bench
