#include "server/node/patience.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

// Lone batches that take so long asleep and awake.
void run(Patience& patience, std::uint32_t batches, Patience::Time asleep, Patience::Time awake) {
  for (std::uint32_t i = 0; i < batches; ++i) {
    patience.batch_done(1, patience.value() > 0ns ? awake : asleep);
  }
}

TEST(Patience, LooksWhereThatIsFaster) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  EXPECT_EQ(patience.value(), 440us) << "four times what it takes";
}

TEST(Patience, SleepsWhereItIsNot) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 140us);
  EXPECT_EQ(patience.value(), 0us);
}

TEST(Patience, TriesBothWaysFromTimeToTime) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 150us);
  run(patience, Patience::kKeptBatches + Patience::kTrialBatches, 150us, 100us);
  EXPECT_EQ(patience.value(), 400us);
  run(patience, Patience::kKeptBatches + Patience::kTrialBatches, 100us, 100us);
  EXPECT_EQ(patience.value(), 0us);
}

TEST(Patience, AStallDecidesNothing) {
  Patience patience(true);
  for (std::uint32_t turn = 0; turn < Patience::kTrialBatches / Patience::kTurnBatches; ++turn) {
    run(patience, Patience::kTurnBatches / 2 - 1, 110us, 110us);
    patience.batch_done(1, patience.value() > 0us ? 110us : 10s);
    run(patience, Patience::kTurnBatches / 2, 110us, 110us);
  }
  EXPECT_EQ(patience.value(), 0us);
}

TEST(Patience, DoesNotLookWhenManyWritesAreUnderWay) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  patience.batch_done(Patience::kLoneRecordsMax + 1, 150us);
  EXPECT_EQ(patience.value(), 0us);
  patience.batch_done(1, 110us);
  EXPECT_GT(patience.value(), 0us);
}

TEST(Patience, LooksAtNothingWhenItIsOff) {
  Patience patience(false);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  EXPECT_EQ(patience.value(), 0us);
}

}  // namespace
}  // namespace mariner::node
