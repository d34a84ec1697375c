#include "server/volume/lag_governor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mariner::volume {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1u << 20;

// 64 MiB of memory, 1 GiB of lag; the image takes 100 MiB a second where the test says so.
class LagGovernorTest : public ::testing::Test {
 protected:
  void measure() {
    governor_.written(
        {.lag_bytes = 10 * kMiB, .image_bytes = 10 * kMiB, .took = milliseconds(100)});
  }
  // Bytes that a greedy writer of 64 KiB writes is admitted in `time`, the lag standing still.
  std::uint64_t admitted(std::uint64_t lag, milliseconds time) {
    std::uint64_t total = 0;
    const LagGovernor::Duration end = now_ + time;
    while (now_ < end && total < 1024 * kMiB) {
      if (governor_.room(lag, now_) == 0) {
        now_ += std::max<LagGovernor::Duration>(governor_.wait(), milliseconds(1));
        continue;
      }
      governor_.admitted(kMiB / 16);
      total += kMiB / 16;
    }
    return total;
  }
  void expect_about(std::uint64_t bytes, double mib) {
    EXPECT_NEAR(static_cast<double>(bytes) / kMiB, mib, mib * 0.1);
  }

  LagGovernor governor_{{.lag_bytes_max = 1024 * kMiB, .memory_bytes_max = 64 * kMiB}};
  LagGovernor::Duration now_{0};
};

TEST_F(LagGovernorTest, ABurstHasAllTheRoomThereIs) {
  measure();
  EXPECT_EQ(governor_.room(0, now_), 1024 * kMiB);
  EXPECT_EQ(governor_.room(700 * kMiB, now_), 324 * kMiB);
  EXPECT_FALSE(governor_.sustained());
}

TEST_F(LagGovernorTest, TheBoundIsTheBoundWhateverThePace) {
  EXPECT_EQ(governor_.room(1024 * kMiB, now_), 0u);
  EXPECT_EQ(governor_.wait().count(), 0) << "only a lower lag helps";
  measure();
  now_ += seconds(1);
  EXPECT_EQ(governor_.room(1024 * kMiB, now_), 0u);
  EXPECT_EQ(governor_.room(1024 * kMiB + 1, now_), 0u);
  EXPECT_EQ(governor_.wait().count(), 0);
  EXPECT_EQ(governor_.room(1024 * kMiB - 1, now_ + seconds(1)), 1u);
}

TEST_F(LagGovernorTest, AnImageThatWasNeverMeasuredPacesNobody) {
  EXPECT_EQ(governor_.room(1000 * kMiB, now_), 24 * kMiB);
  EXPECT_TRUE(governor_.sustained());
}

TEST_F(LagGovernorTest, AfterABurstTheImageGetsAheadUntilTheRestFitsIntoMemory) {
  measure();
  governor_.room(768 * kMiB, now_);
  EXPECT_TRUE(governor_.sustained());
  expect_about(admitted(768 * kMiB, seconds(1)), 50);
  expect_about(admitted(64 * kMiB, seconds(1)), 50);
}

TEST_F(LagGovernorTest, WithinMemoryThePaceFollowsTheRoom) {
  measure();
  governor_.room(768 * kMiB, now_);
  expect_about(admitted(48 * kMiB, seconds(1)), 100);
  EXPECT_GT(admitted(32 * kMiB, seconds(1)), 120 * kMiB);
  EXPECT_LT(admitted(56 * kMiB, seconds(1)), 80 * kMiB);
  EXPECT_EQ(governor_.room(15 * kMiB, now_), 1009 * kMiB) << "little is behind: nobody is slowed";
  EXPECT_TRUE(governor_.sustained());
}

TEST_F(LagGovernorTest, ABurstMayComeAgainWhenTheImageHasCaughtUp) {
  measure();
  governor_.room(768 * kMiB, now_);
  governor_.room(9 * kMiB, now_);
  EXPECT_TRUE(governor_.sustained());
  governor_.room(8 * kMiB, now_);
  EXPECT_FALSE(governor_.sustained());
  EXPECT_EQ(governor_.room(500 * kMiB, now_), 524 * kMiB);
}

TEST_F(LagGovernorTest, AWriterBelowThePaceWaitsForNothing) {
  measure();
  governor_.room(768 * kMiB, now_);
  for (int i = 0; i < 1000; ++i) {  // 40 MiB a second
    now_ += milliseconds(25);
    ASSERT_GT(governor_.room(768 * kMiB, now_), 0u);
    governor_.admitted(kMiB);
  }
}

TEST_F(LagGovernorTest, CreditDoesNotPileUpAndADebtIsPaid) {
  measure();
  governor_.room(768 * kMiB, now_);
  now_ += seconds(60);
  EXPECT_EQ(governor_.room(768 * kMiB, now_), kMiB / 2) << "10 ms of 50 MiB a second";
  governor_.admitted(kMiB + kMiB / 2);
  EXPECT_EQ(governor_.room(768 * kMiB, now_), 0u);
  EXPECT_NEAR(std::chrono::duration<double>(governor_.wait()).count(), 0.02, 0.001);
  now_ += governor_.wait();
  EXPECT_GT(governor_.room(768 * kMiB, now_), 0u);
}

TEST_F(LagGovernorTest, PortionsShrinkForASlowImageAndGrowForAFastOne) {
  const std::uint64_t first = governor_.portion_bytes();
  governor_.written({.lag_bytes = first, .image_bytes = first, .took = seconds(1)});
  EXPECT_EQ(governor_.portion_bytes(), first / 2);
  for (int i = 0; i < 9; ++i) governor_.written({first, first, seconds(1)});
  EXPECT_EQ(governor_.portion_bytes(), PortionSize::kBytesMin);
  governor_.written({first, kMiB / 2, milliseconds(1)});
  EXPECT_EQ(governor_.portion_bytes(), PortionSize::kBytesMin) << "it was not a whole one";
  for (int i = 0; i < 9; ++i) governor_.written({32 * kMiB, 32 * kMiB, milliseconds(50)});
  EXPECT_EQ(governor_.portion_bytes(), 8 * kMiB) << "an eighth of the memory";
}

}  // namespace
}  // namespace mariner::volume
