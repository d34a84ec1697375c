#include "tests/bench/load_measure.h"

#include <gtest/gtest.h>

namespace mariner::bench {
namespace {

constexpr Nanoseconds kMs{1'000'000};

TEST(LoadMeasure, CountsNothingBeforeTheWarmUpEnds) {
  LoadMeasure measure(Nanoseconds{0}, 1, 1);
  measure.completed(998 * kMs, 999 * kMs);
  measure.batch(999 * kMs, 3, 4096);
  measure.finish();
  EXPECT_EQ(measure.latency().total(), 0u);
  EXPECT_EQ(measure.batch_records().total(), 0u);
  EXPECT_FALSE(measure.failure().empty());
}

TEST(LoadMeasure, TheFirstCompletionOnlyStartsTheMeasuring) {
  LoadMeasure measure(Nanoseconds{0}, 1, 1);
  measure.completed(900 * kMs, 1000 * kMs);
  measure.completed(1000 * kMs, 1100 * kMs);
  measure.completed(1100 * kMs, 1500 * kMs);
  measure.finish();
  EXPECT_TRUE(measure.failure().empty());
  EXPECT_EQ(measure.latency().total(), 2u);
  EXPECT_DOUBLE_EQ(measure.seconds(), 0.5);
  EXPECT_EQ(measure.latency().max(), 400'000'000u);
}

TEST(LoadMeasure, TheEndIsAfterWarmUpAndMeasuredPart) {
  LoadMeasure measure(Nanoseconds{0}, 1, 1);
  EXPECT_TRUE(measure.wants_more(1999 * kMs));
  EXPECT_FALSE(measure.wants_more(2000 * kMs));
}

TEST(LoadMeasure, AFailureEndsIt) {
  LoadMeasure measure(Nanoseconds{0}, 1, 1);
  measure.fail("first");
  measure.fail("second");
  EXPECT_FALSE(measure.wants_more(kMs));
  EXPECT_EQ(measure.failure(), "first");
}

TEST(LoadMeasure, KeepsThePartsOfARecordsTime) {
  LoadMeasure measure(Nanoseconds{0}, 0, 1);
  measure.completed({Nanoseconds{0}, Nanoseconds{0}, kMs, kMs});
  measure.completed({kMs, 3 * kMs, 6 * kMs, 10 * kMs});
  measure.finish();
  EXPECT_EQ(measure.gathering().max(), 2'000'000u);
  EXPECT_EQ(measure.writing().max(), 3'000'000u);
  EXPECT_EQ(measure.completing().max(), 4'000'000u);
  EXPECT_EQ(measure.latency().max(), 9'000'000u);
}

}  // namespace
}  // namespace mariner::bench
