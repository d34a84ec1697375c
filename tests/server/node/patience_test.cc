#include "server/node/patience.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

constexpr auto kNow = 1000s;
constexpr std::uint32_t kBytes = 8192;

bool looks(Patience& patience) {
  const Outlook outlook = patience.outlook(kNow, true);
  EXPECT_TRUE(outlook.under_way);
  return outlook.until > outlook.from;
}

// Lone batches that take so long asleep and awake.
void run(Patience& patience, std::uint32_t batches, Patience::Time asleep, Patience::Time awake) {
  for (std::uint32_t i = 0; i < batches; ++i) {
    patience.batch_done(1, kBytes, looks(patience) ? awake : asleep);
  }
}

TEST(Patience, LooksWhereThatIsFaster) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  EXPECT_TRUE(looks(patience));
}

TEST(Patience, SleepsWhereItIsNot) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 140us);
  EXPECT_FALSE(looks(patience));
}

TEST(Patience, SleepsForTheFirstHalf) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches + 1000, 150us, 100us);
  const Outlook outlook = patience.outlook(kNow, true);
  EXPECT_GE(outlook.from - kNow, 45us);
  EXPECT_LE(outlook.from - kNow, 55us);
  EXPECT_GE(outlook.until - kNow, 180us);
  EXPECT_LE(outlook.until - kNow, 220us);
  // Something else has woken the loop meanwhile: it is the same batch.
  const Outlook again = patience.outlook(kNow + 30us, true);
  EXPECT_EQ(again.from, outlook.from);
  EXPECT_EQ(again.until, outlook.until);
}

TEST(Patience, TheNextBatchCountsFromItsOwnBeginning) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 100us);
  const Outlook first = patience.outlook(kNow, true);
  patience.batch_done(1, kBytes, 100us);
  EXPECT_GT(patience.outlook(kNow + 100us, true).from, first.from + 90us) << "at once behind it";
  const Outlook idle = patience.outlook(kNow + 200us, false);
  EXPECT_FALSE(idle.under_way);
  EXPECT_LE(idle.until, idle.from);
  EXPECT_GE(patience.outlook(kNow + 300us, true).from, kNow + 300us) << "after a pause";
}

TEST(Patience, TriesBothWaysFromTimeToTime) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 150us);
  EXPECT_FALSE(looks(patience));
  run(patience, Patience::kKeptBatches + Patience::kTrialBatches, 150us, 100us);
  EXPECT_TRUE(looks(patience));
  run(patience, Patience::kKeptBatches + Patience::kTrialBatches, 100us, 100us);
  EXPECT_FALSE(looks(patience));
}

TEST(Patience, AStallDecidesNothing) {
  Patience patience(true);
  for (std::uint32_t turn = 0; turn < Patience::kTrialBatches / Patience::kTurnBatches; ++turn) {
    run(patience, Patience::kTurnBatches / 2 - 1, 110us, 110us);
    patience.batch_done(1, kBytes, looks(patience) ? 110us : 10s);
    run(patience, Patience::kTurnBatches / 2, 110us, 110us);
  }
  EXPECT_FALSE(looks(patience));
}

TEST(Patience, DoesNotLookWhenManyWritesAreUnderWay) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  patience.batch_done(Patience::kLoneRecordsMax + 1, kBytes, 150us);
  EXPECT_FALSE(looks(patience));
  patience.batch_done(1, kBytes, 110us);
  EXPECT_TRUE(looks(patience));
}

TEST(Patience, DoesNotLookForTheEndOfLongWrites) {
  Patience patience(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  patience.batch_done(1, Patience::kLoneBytesMax + 1, 150us);
  EXPECT_FALSE(looks(patience));
  patience.batch_done(1, Patience::kLoneBytesMax, 150us);
  EXPECT_TRUE(looks(patience));
}

TEST(Patience, ASlowDiskIsWorthNoProcessor) {
  Patience patience(true);
  for (std::uint32_t i = 0; i < 10 * Patience::kTrialBatches; ++i) {
    EXPECT_FALSE(looks(patience)) << i;
    patience.batch_done(1, kBytes, Patience::kLongest + Patience::kLongest / 4);
  }
}

TEST(Patience, LooksAtNothingWhenItIsOff) {
  Patience patience(false);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  EXPECT_FALSE(looks(patience));
  patience.set_polls(true);
  run(patience, Patience::kTrialBatches, 150us, 110us);
  EXPECT_TRUE(looks(patience));
  patience.set_polls(false);
  EXPECT_FALSE(looks(patience));
}

}  // namespace
}  // namespace mariner::node
