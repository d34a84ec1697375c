// Every policy, beside a log and an image that are looked at block by block: at any time each
// moment of the window must read back exactly what stood there.
#include "tests/bench/cleaner_policy.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/cleaner_heat.h"
#include "tests/bench/cleaner_run.h"

namespace mariner::bench {
namespace {

constexpr double kMovedMax = 0.875;
constexpr CleanerLogOptions kSmall{
    .tracks = 64, .track_blocks = 4, .volume_blocks = 24, .window = 180, .lag = 9};

// What was written, by itself: it knows nothing of places.
class Witness {
 public:
  explicit Witness(const CleanerLogOptions& options)
      : options_(options), versions_(options.volume_blocks) {
    for (std::uint32_t block = 0; block < options.volume_blocks; ++block)
      versions_[block] = {{0, block}};
  }

  void write(std::uint32_t block) {
    ++now_;
    versions_[block].push_back({now_, options_.volume_blocks + now_ - 1});
  }

  // Whether each moment that the model keeps reads back from its slots and from an image that is as
  // far behind as it may be.
  void check(const CleanerModel& model) const {
    const std::vector<unsigned> held = slots_of(model);
    for (std::uint32_t block = 0; block < versions_.size(); ++block) {
      const VersionId image = shown(block, now_ < options_.lag ? 0 : now_ - options_.lag);
      bool is_current = true;
      for (auto version = versions_[block].rbegin(); version != versions_[block].rend();
           ++version) {
        const auto& [time, id] = *version;
        ASSERT_TRUE(held.at(id) == 1 || (is_current && image == id))
            << "block " << block << " as of " << time << " at " << now_;
        if (time <= model.horizon()) break;  // the one that the first moment shows
        is_current = false;
      }
    }
  }

 private:
  [[nodiscard]] VersionId shown(std::uint32_t block, WriteTime moment) const {
    VersionId found = 0;
    for (const auto& [time, id] : versions_[block]) {
      if (time <= moment) found = id;
    }
    return found;
  }

  // How often each version stands in the log, and that the counts of the tracks are right.
  [[nodiscard]] std::vector<unsigned> slots_of(const CleanerModel& model) const {
    std::vector<unsigned> held(options_.volume_blocks + now_);
    std::uint32_t in_use = 0;
    for (std::uint32_t i = 0; i < model.tracks().size(); ++i) {
      const CleanerTrack& track = model.tracks()[i];
      std::uint32_t counted = 0;
      for (std::uint32_t slot = 0; slot < track.used; ++slot) {
        const VersionId version = model.held_in(i, slot);
        if (version == CleanerModel::kNone) continue;
        ++held.at(version);
        ++counted;
      }
      EXPECT_EQ(counted, track.history + track.current);
      in_use += track.used > 0 ? 1 : 0;
    }
    EXPECT_EQ(in_use + model.free_tracks(), model.tracks().size());
    for (const unsigned times : held) EXPECT_LE(times, 1u);
    return held;
  }

  const CleanerLogOptions options_;
  WriteTime now_ = 0;
  std::vector<std::vector<std::pair<WriteTime, VersionId>>> versions_;  // by block, in order
};

using Writes = std::vector<std::uint32_t>;

std::map<std::string, std::unique_ptr<CleanerPolicy>> all_policies(const CleanerLogOptions& log,
                                                                   const Writes& writes) {
  std::map<std::string, std::unique_ptr<CleanerPolicy>> out;
  out["fifo"] = make_fifo(0.5);
  out["greedy"] = make_greedy(kMovedMax, false);
  out["greedy-keep"] = make_greedy(kMovedMax, true);
  out["cost-benefit"] = make_cost_benefit(kMovedMax);
  out["generations"] = make_generations(kMovedMax, 0.1, 2);
  out["generations-adopt"] = make_generations(kMovedMax, 0.1, 0.5);
  const HeatOptions heat{.moved_max = kMovedMax, .span = 30, .buckets = 3};
  out["streams"] = make_streams(heat, std::make_unique<LastWriteHeat>(log.volume_blocks));
  out["streams-bloom"] = make_streams(heat, std::make_unique<BloomHeat>(256));
  out["rings"] = make_rings(heat, std::make_unique<RateHeat>(log.volume_blocks, 100));
  out["rings-swept"] = make_rings(heat, std::make_unique<SweptHeat>(log.volume_blocks, 100));
  out["rings-future"] = make_rings(heat, std::make_unique<FutureHeat>(writes, log.volume_blocks));
  out["rings-three"] = make_rings({.moved_max = kMovedMax, .span = 30, .late_ring = false},
                                  std::make_unique<LastWriteHeat>(log.volume_blocks));
  out["rings-guarded"] = make_rings({.moved_max = kMovedMax, .span = 60, .survivors = 0.35},
                                    std::make_unique<LastWriteHeat>(log.volume_blocks));
  out["rings-joined"] = make_rings({.moved_max = kMovedMax, .span = 30, .history_ring = false},
                                   std::make_unique<LastWriteHeat>(log.volume_blocks));
  return out;
}

// `check` at every write of some turns of the log.
void run_all(const CleanerLogOptions& log, const CleanerLoad& load, std::uint64_t seed) {
  const Writes writes = make_writes(load, log.volume_blocks, 1200, seed);
  for (const auto& [name, policy] : all_policies(log, writes)) {
    SCOPED_TRACE(name + ", seed " + std::to_string(seed));
    Witness witness(log);
    CleanerRun run(log, *policy, [&](const CleanerModel& model) { witness.check(model); });
    for (const std::uint32_t block : writes) {
      witness.write(block);
      run.write(block);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(run.model().counts().before_images, 0u);
    EXPECT_GT(run.model().counts().dropped + run.model().counts().moved, 0u);
  }
}

TEST(CleanerPolicy, KeepsEachMomentOfTheWindow) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    run_all(kSmall, {}, seed);
    run_all(kSmall, {.hot_writes = 0.8, .hot_blocks = 0.2}, seed);
  }
}

TEST(CleanerPolicy, KeepsEachMomentOfAWindowThatIsShortened) {
  CleanerLogOptions log = kSmall;
  log.window = 250;  // of 256 slots
  const Writes writes = make_writes({}, log.volume_blocks, 1200, 1);
  for (const auto& [name, policy] : all_policies(log, writes)) {
    SCOPED_TRACE(name);
    Witness witness(log);
    CleanerRun run(log, *policy, [&](const CleanerModel& model) { witness.check(model); });
    for (const std::uint32_t block : writes) {
      witness.write(block);
      run.write(block);
      if (HasFailure()) return;
    }
    EXPECT_LT(run.model().now() - run.model().horizon(), 250u);
  }
}

// The witness itself must see a fault: here the image is further behind than the model was told.
TEST(CleanerPolicy, IsWitnessedByOneThatSeesALoss) {
  CleanerLogOptions behind = kSmall;
  behind.lag = 200;
  Witness witness(behind);
  const auto policy = make_generations(kMovedMax, 0.1, 2);
  const auto fails = [&] {
    CleanerRun run(kSmall, *policy);
    for (const std::uint32_t block : make_writes({}, kSmall.volume_blocks, 100, 1)) {
      witness.write(block);
      run.write(block);
    }
    witness.check(run.model());
  };
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    fails();
  }
  EXPECT_GT(failures.size(), 0);
}

// Hot is everything at first, which leaves more survivors than there is room for.
TEST(CleanerPolicy, RingsTakeLessForHotWhenTooMuchSurvives) {
  const CleanerLogOptions log{
      .tracks = 512, .track_blocks = 16, .volume_blocks = 1638, .window = 6963, .lag = 205};
  const auto writes = make_writes({}, log.volume_blocks, 10 * 8192, 1);
  const auto measured = [&](double survivors) {
    const auto policy = make_rings({.span = 2900, .survivors = survivors},
                                   std::make_unique<RateHeat>(log.volume_blocks, 3900));
    CleanerRun run(log, *policy);
    return run.measure(writes).amplification;
  };
  EXPECT_GT(measured(1), 3);
  EXPECT_LT(measured(0.35), 2.5);
}

TEST(CleanerPolicy, GenerationsWriteEverythingTwice) {
  const CleanerLogOptions log{
      .tracks = 128, .track_blocks = 16, .volume_blocks = 400, .window = 1600, .lag = 50};
  const auto policy = make_generations(kMovedMax, 0.05, 2);
  CleanerRun run(log, *policy);
  const CleanerResult result = run.measure(make_writes({}, 400, 10 * 2048, 1));
  EXPECT_NEAR(result.amplification, 2, 0.02);
  EXPECT_TRUE(result.holds);
}

}  // namespace
}  // namespace mariner::bench
