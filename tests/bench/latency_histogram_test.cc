#include "tests/bench/latency_histogram.h"

#include <gtest/gtest.h>

#include <limits>

namespace mariner::bench {
namespace {

TEST(LatencyHistogram, AnswersNothingWhenNothingWasRecorded) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile(99), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(LatencyHistogram, KeepsSmallValuesExactly) {
  LatencyHistogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(1), 1u);
  EXPECT_EQ(histogram.percentile(50), 50u);
  EXPECT_EQ(histogram.percentile(99), 99u);
  EXPECT_EQ(histogram.percentile(100), 100u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
}

TEST(LatencyHistogram, KeepsLargeValuesWithinItsError) {
  for (std::uint64_t value = 1; value < std::uint64_t{1} << 62; value = value * 3 + 1) {
    LatencyHistogram histogram;
    histogram.record(value);
    histogram.record(std::numeric_limits<std::uint64_t>::max());
    const std::uint64_t answer = histogram.percentile(50);
    EXPECT_GE(answer, value);
    EXPECT_LE(answer - value, value / LatencyHistogram::kSteps) << value;
  }
}

TEST(LatencyHistogram, NeverAnswersAboveTheLargestValue) {
  LatencyHistogram histogram;
  histogram.record(1'000'000'001);
  EXPECT_EQ(histogram.percentile(99.9), 1'000'000'001u);
}

TEST(LatencyHistogram, FindsARareSlowOne) {
  LatencyHistogram histogram;
  for (int i = 0; i < 998; ++i) histogram.record(100);
  histogram.record(50'000);
  histogram.record(90'000);
  EXPECT_EQ(histogram.percentile(99), 100u);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(99.9)), 50'000, 500);
  EXPECT_EQ(histogram.percentile(100), 90'000u);
}

}  // namespace
}  // namespace mariner::bench
