#include "tests/bench/cleaner_run.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mariner::bench {
namespace {

constexpr CleanerLogOptions kLog{
    .tracks = 128, .track_blocks = 16, .volume_blocks = 400, .window = 1024, .lag = 50};
constexpr std::uint64_t kBlocks = 2048;

TEST(CleanerRun, WritesHotBlocksAsOftenAsAsked) {
  const auto writes = make_writes({.hot_writes = 0.8, .hot_blocks = 0.2}, 1000, 100'000, 1);
  const auto hot = std::ranges::count_if(writes, [](std::uint32_t block) { return block < 200; });
  EXPECT_NEAR(static_cast<double>(hot), 80'000, 600);
  EXPECT_LT(std::ranges::max(writes), 1000u);
  EXPECT_EQ(writes, make_writes({.hot_writes = 0.8, .hot_blocks = 0.2}, 1000, 100'000, 1));
}

TEST(CleanerRun, ChangesWhichBlocksAreHot) {
  const auto writes =
      make_writes({.hot_writes = 1, .hot_blocks = 0.2, .change = 1000}, 1000, 6000, 1);
  for (std::size_t i = 0; i < writes.size(); ++i) EXPECT_EQ(writes[i] / 200, i / 1000 % 5) << i;
}

TEST(CleanerRun, CountsEachAppendedBlockOnce) {
  const auto policy = make_fifo(0.5);
  CleanerRun run(kLog, *policy);
  const CleanerResult result = run.measure(make_writes({}, 400, 10 * kBlocks, 1));
  EXPECT_DOUBLE_EQ(result.amplification, 1 + result.before_images + result.moved);
  EXPECT_GT(result.moved, 0);
  EXPECT_TRUE(result.steady);
}

TEST(CleanerRun, KeepsTracksFree) {
  const auto policy = make_fifo(0.5);
  std::uint32_t least = kLog.tracks;
  CleanerRun run(kLog, *policy,
                 [&](const CleanerModel& model) { least = std::min(least, model.free_tracks()); });
  for (const std::uint32_t block : make_writes({}, 400, 5 * kBlocks, 1)) run.write(block);
  EXPECT_EQ(least, std::max(kStreamsMax, 128u / 32));
}

TEST(CleanerRun, TellsByHowMuchAWindowFellShort) {
  CleanerLogOptions log = kLog;
  log.window = 1900;  // of 2048
  const auto policy = make_fifo(0.5);
  CleanerRun run(log, *policy);
  const CleanerResult result = run.measure(make_writes({}, 400, 10 * kBlocks, 1));
  EXPECT_FALSE(result.holds);
  EXPECT_LT(result.held, 0.7);
  EXPECT_GT(result.held_min, 0.2);
  EXPECT_LE(result.held_min, result.held);
}

TEST(CleanerRun, HoldsAWindowThatIsSmall) {
  CleanerLogOptions log = kLog;
  log.window = 600;
  const auto policy = make_fifo(0.5);
  CleanerRun run(log, *policy);
  const CleanerResult result = run.measure(make_writes({}, 400, 10 * kBlocks, 1));
  EXPECT_TRUE(result.holds);
  EXPECT_DOUBLE_EQ(result.held, 600.0 / kBlocks);
}

}  // namespace
}  // namespace mariner::bench
