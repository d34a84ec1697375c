#include "tests/bench/cleaner_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/bench/cleaner_policy.h"
#include "tests/bench/cleaner_run.h"

namespace mariner::bench {
namespace {

using Load = std::vector<HeatClass>;

TEST(CleanerBound, IsOneWhereAllThatIsCurrentFits) {
  const CleanerRoom room{.room = 1001, .window = 4000, .lag = 10};
  EXPECT_DOUBLE_EQ(amplification_of_oracle(Load{{1, 1000}}, room), 1);
  EXPECT_DOUBLE_EQ(amplification_without_tracks(Load{{1, 1000}}, room), 1);
  EXPECT_GT(amplification_with_tracks(Load{{1, 1000}}, room), 1.1) << "dead slots take room";
}

TEST(CleanerBound, OfUniformWritesIsTheShareThatDoesNotFit) {
  const CleanerRoom room{.room = 400, .window = 4000};
  EXPECT_NEAR(amplification_without_tracks(Load{{1, 1000}}, room), 1.6, 1e-6);
}

// room = life * (1 - (1 + x) * exp(-x)), x being the limit as a multiple of the life.
TEST(CleanerBound, OfTheOracleDropsWhatStaysLongest) {
  const double x = 1.5;
  const CleanerRoom room{.room = 1000 * (1 - (1 + x) * std::exp(-x)), .window = 4000};
  EXPECT_NEAR(amplification_of_oracle(Load{{1, 1000}}, room), 1 + std::exp(-x), 1e-6);
}

TEST(CleanerBound, KeepsTheHotBlocksFirst) {
  const Load load = {{0.8, 200}, {0.2, 800}};
  EXPECT_NEAR(amplification_without_tracks(load, {.room = 200, .window = 4000}), 1.2, 1e-6);
  EXPECT_NEAR(amplification_without_tracks(load, {.room = 600, .window = 4000}), 1.1, 1e-6);
}

TEST(CleanerBound, OfTracksDropsAllWhereThereIsNoRoom) {
  EXPECT_NEAR(amplification_with_tracks(Load{{1, 1000}}, {.room = 10, .window = 4000, .lag = 10}),
              2, 1e-6);
}

// No policy does better than the oracle, and none that knows no more than rates better than is
// possible without tracks.
TEST(CleanerBound, IsBelowWhatPoliciesDo) {
  const CleanerLogOptions log{
      .tracks = 512, .track_blocks = 8, .volume_blocks = 819, .window = 3400, .lag = 100};
  const double blocks = 4096;
  const CleanerRoom room{
      .room = blocks * (1 - CleanerRun::kKeptFree) - log.window, .window = 3400, .lag = 100};
  const CleanerLoad load{.hot_writes = 0.8, .hot_blocks = 0.2};
  const Load classes = {{0.8, 0.2 * 819}, {0.2, 0.8 * 819}};
  const std::vector<std::uint32_t> writes = make_writes(load, log.volume_blocks, 10 * 4096, 1);
  const auto measured = [&](std::unique_ptr<CleanerHeat> heat) {
    const auto policy = make_rings({.span = room.room}, std::move(heat));
    CleanerRun run(log, *policy);
    const CleanerResult result = run.measure(writes);
    EXPECT_TRUE(result.holds);
    return result.amplification;
  };
  const double future = measured(std::make_unique<FutureHeat>(writes, log.volume_blocks));
  const double rate = measured(std::make_unique<RateHeat>(log.volume_blocks, 2048));
  EXPECT_GT(future, amplification_of_oracle(classes, room));
  EXPECT_GT(rate, amplification_without_tracks(classes, room));
  EXPECT_LT(rate, 1.5);
  EXPECT_LT(amplification_of_oracle(classes, room), amplification_without_tracks(classes, room));
  EXPECT_LT(amplification_without_tracks(classes, room), amplification_with_tracks(classes, room));
}

}  // namespace
}  // namespace mariner::bench
