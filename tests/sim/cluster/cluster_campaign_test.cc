// The simulated cluster from many seeds, and the mistakes that it has to find.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/sim/cluster/cluster_sim.h"
#include "tests/support/seeds.h"

namespace mariner::test {
namespace {

TEST(ClusterCampaign, OneHistoryWhateverFails) {
  ClusterSim::Totals totals;
  for_seeds(100, [&](std::uint64_t seed) {
    ClusterSim sim(seed, Planted::kNothing);
    EXPECT_EQ(sim.run(totals), "");
  });
  std::printf(
      "seeds: %llu runs, %llu virtual seconds, %llu faults, %llu epochs; %llu writes acknowledged, "
      "%llu reads (%llu of a target that stores nothing), %llu moments opened; %llu times without "
      "a "
      "logger, with %llu writes; %llu logs lost; %llu storage disks replaced (%llu of them all "
      "that "
      "was kept, with one other); given up by the log %llu times\n",
      static_cast<unsigned long long>(totals.runs), static_cast<unsigned long long>(totals.seconds),
      static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.epochs),
      static_cast<unsigned long long>(totals.acknowledged),
      static_cast<unsigned long long>(totals.reads),
      static_cast<unsigned long long>(totals.reads_elsewhere),
      static_cast<unsigned long long>(totals.moments),
      static_cast<unsigned long long>(totals.times_away),
      static_cast<unsigned long long>(totals.acknowledged_away),
      static_cast<unsigned long long>(totals.logs_lost),
      static_cast<unsigned long long>(totals.disks_replaced),
      static_cast<unsigned long long>(totals.journals_replaced),
      static_cast<unsigned long long>(totals.given_up));
  EXPECT_GT(totals.acknowledged_away, 0);
  EXPECT_GT(totals.logs_lost, 0);
  EXPECT_GT(totals.disks_replaced, 0);
  EXPECT_GT(totals.journals_replaced, 0);
  EXPECT_GT(totals.given_up, 0);
  EXPECT_GT(totals.reads_elsewhere, 0);
}

class PlantedMistake : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedMistake, IsFound) {
  constexpr std::uint64_t kSeedsMax = 2000;
  ClusterSim::Totals totals;
  for (std::uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    ClusterSim sim(seed, GetParam());
    const std::string violated = sim.run(totals);
    if (violated.empty()) continue;
    std::printf("%s: seed %llu: %s\n", std::string(name_of(GetParam())).c_str(),
                static_cast<unsigned long long>(seed), violated.c_str());
    // The same seed, the same end.
    ClusterSim again(seed, GetParam());
    EXPECT_EQ(again.run(totals), violated);
    return;
  }
  FAIL() << name_of(GetParam()) << " is not found with " << kSeedsMax << " seeds";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedMistake,
    ::testing::Values(Planted::kAcknowledgedBeforeFlush, Planted::kEpochNotChecked,
                      Planted::kForgottenInCatchUp, Planted::kReadFromMirror,
                      Planted::kNumbersReused, Planted::kLeaseHeldTooLong, Planted::kNotHardened,
                      Planted::kNotTakenBack, Planted::kOneJournalCounts, Planted::kSpillNotPut,
                      Planted::kCommittedBeforeCaughtUp, Planted::kNotStartedOver,
                      Planted::kBuiltFromLogAlone, Planted::kEmptyJournalCounts,
                      Planted::kReadFromAnyImage),
    [](const auto& each) { return "Number" + std::to_string(static_cast<int>(each.param)); });

}  // namespace
}  // namespace mariner::test
