#include <gtest/gtest.h>

#include "tests/server/volume/reclaimer_fixture.h"

namespace mariner::volume {
namespace {

class ReclaimerPreparingTest : public ReclaimerTest {
 protected:
  void zero(std::uint64_t block) {
    rig_.volume().live().trim({block * kBlockBytes, kBlockBytes}, TrimMode::kZero,
                              [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
};

// Of what is judged together, some is logged again and some is not touched.
TEST_F(ReclaimerPreparingTest, WhatNeedsNothingBecomesTheBaseBesideWhatIsMoved) {
  write(1, 5);
  write(2, 50);
  next_track();
  write(1, 6);
  drain();
  ASSERT_EQ(reclaim(rig_.answers().moment_of({3}).time), 1u);
  ASSERT_EQ(rig_.volume().index().oldest().sequence, SequenceNumber{2});
  EXPECT_EQ(at(2, 1), 5u) << "moved";
  EXPECT_EQ(at(2, 2), 50u);
  write(2, 51);
  drain();
  EXPECT_EQ(at(2, 2), 50u) << "logged before it was overwritten";
  EXPECT_EQ(at(2, 1), 5u);
  EXPECT_EQ(rig_.early_overwrites(), 0u);
}

// The image was overwritten since it held the base; then it holds it again, as zeros.
TEST_F(ReclaimerPreparingTest, WhatIsPunchedIsTheBaseAgain) {
  make_base();
  ASSERT_FALSE(HasFatalFailure());
  write(1, 7);
  drain();
  zero(1);
  drain();
  const SequenceNumber zeros = rig_.volume().index().newest().sequence;
  next_track();
  write(3, 8);
  drain();
  while (reclaim() > 0) {
    next_track();
    write(3, 9);
    drain();
    if (rig_.tracks_freed() > 6) break;
  }
  ASSERT_GE(rig_.volume().index().oldest().sequence, zeros);
  const std::uint64_t oldest = rig_.volume().index().newest().sequence.value;
  write(1, 10);
  drain();
  EXPECT_EQ(at(oldest, 1), 0u) << "logged before they were overwritten";
  EXPECT_EQ(tag(rig_.volume().live(), 1), 10u);
  EXPECT_EQ(rig_.early_overwrites(), 0u);
}

}  // namespace
}  // namespace mariner::volume
