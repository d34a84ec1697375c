// The simulated cluster from many seeds, and the mistakes that it has to find.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/sim/cluster/cluster_sim.h"
#include "tests/support/seeds.h"

namespace mariner::test {
namespace {

// Two lines for who runs a campaign (tests/run.sh).
std::string told(const ClusterSim::Totals& totals) {
  const BusTotals& bus = totals.bus;
  return fmt::format(
             "seeds: {} runs, {} virtual seconds, {} faults, {} epochs; {} writes acknowledged, {} "
             "reads ({} of a target that stores nothing), {} moments opened; {} times without a "
             "logger, with {} writes; {} logs lost; {} storage disks replaced ({} of them all that "
             "was kept, with one other); given up by the log {} times; images that failed were "
             "done "
             "without {} times, needed {} times\n",
             totals.runs, totals.seconds, totals.faults, totals.epochs, totals.acknowledged,
             totals.reads, totals.reads_elsewhere, totals.moments, totals.times_away,
             totals.acknowledged_away, totals.logs_lost, totals.disks_replaced,
             totals.journals_replaced, totals.given_up, totals.images_let_go,
             totals.images_failed) +
         fmt::format(
             "seeds with multicast: {} runs; of {} frames with a payload for several nodes {} had "
             "it by multicast, {} frames carried theirs; {} KiB repaired; nodes admitted {} times, "
             "dismissed {} times; {} strange datagrams\n",
             totals.runs_with_bus, bus.shared, bus.referring, bus.carried, bus.repaired >> 10,
             bus.admitted, bus.dismissed, bus.strange);
}

TEST(ClusterCampaign, OneHistoryWhateverFails) {
  ClusterSim::Totals totals;
  for_seeds(100, [&](std::uint64_t seed) {
    ClusterSim sim(seed, Planted::kNothing);
    EXPECT_EQ(sim.run(totals), "");
  });
  std::fputs(told(totals).c_str(), stdout);
  EXPECT_GT(totals.acknowledged_away, 0);
  EXPECT_GT(totals.logs_lost, 0);
  EXPECT_GT(totals.disks_replaced, 0);
  EXPECT_GT(totals.journals_replaced, 0);
  EXPECT_GT(totals.given_up, 0);
  EXPECT_GT(totals.images_let_go, 0);
  EXPECT_GT(totals.images_failed, 0);
  EXPECT_GT(totals.reads_elsewhere, 0);
  // Most of what several are to get, although multicast is at its worst.
  EXPECT_GT(totals.bus.referring, totals.bus.shared / 2);
  EXPECT_GT(totals.bus.carried, 0);
  EXPECT_GT(totals.bus.repaired, 0);
  EXPECT_GT(totals.bus.dismissed, 0);
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
                      Planted::kReadFromAnyImage, Planted::kHandedOnIncomplete,
                      Planted::kPayloadReused, Planted::kStreamReused, Planted::kFailedWriteCounts),
    [](const auto& each) { return "Number" + std::to_string(static_cast<int>(each.param)); });

}  // namespace
}  // namespace mariner::test
