// One way to clean a log (cleaner_policy.h) under one load, for several windows.
//
//   mariner-cleaner-model POLICY [OPTION]...      --help lists them
//
// Shares are of the log where nothing else is said. Prints a JSON list with an object for each
// window.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/cleaner_bound.h"
#include "tests/bench/cleaner_heat.h"
#include "tests/bench/cleaner_policy.h"
#include "tests/bench/cleaner_run.h"

namespace mariner::bench {
namespace {

struct Given {
  std::string policy;
  std::string heat = "swept";
  CleanerLoad load;
  std::vector<double> windows = {0.85};
  double change = 0;
  double volume = 0.2;
  double lag = 1.0 / 40;
  std::uint32_t tracks = 512;
  std::uint32_t track_blocks = 128;
  double moved_max = 0.875;
  double span = 1;    // of the room
  double memory = 4;  // spans
  unsigned buckets = 4;
  double survivors = 1;
  bool no_late_ring = false;
  bool no_history_ring = false;
  double young = 0.05;
  double adopt = 2;
  std::uint64_t seed = 1;

  [[nodiscard]] double blocks() const { return static_cast<double>(tracks) * track_blocks; }
  [[nodiscard]] CleanerLogOptions options(double window) const {
    const auto count = [&](double share) {
      return static_cast<std::uint32_t>(std::lround(share * blocks()));
    };
    return {.tracks = tracks,
            .track_blocks = track_blocks,
            .volume_blocks = count(volume),
            .window = count(window),
            .lag = count(lag)};
  }
  // What the log has beyond history and what is kept free.
  [[nodiscard]] double room(double window) const {
    return (1 - CleanerRun::kKeptFree - window) * blocks();
  }
};

using Writes = std::vector<std::uint32_t>;

std::unique_ptr<CleanerHeat> make_heat(const Given& given, std::uint32_t volume_blocks, double span,
                                       const Writes& writes) {
  const double memory = given.memory * span;
  if (given.heat == "last") return std::make_unique<LastWriteHeat>(volume_blocks);
  if (given.heat == "bloom") {
    // Eight bits for each write of half a span.
    const auto bits = static_cast<std::size_t>(std::max(64.0, 4 * span));
    return std::make_unique<BloomHeat>(std::bit_ceil(bits));
  }
  if (given.heat == "rate") return std::make_unique<RateHeat>(volume_blocks, memory);
  if (given.heat == "future") return std::make_unique<FutureHeat>(writes, volume_blocks);
  return std::make_unique<SweptHeat>(volume_blocks, memory);
}

std::unique_ptr<CleanerPolicy> make_policy(const Given& given, double window,
                                           std::uint32_t volume_blocks, const Writes& writes) {
  const HeatOptions options{.moved_max = given.moved_max,
                            .span = given.span * given.room(window),
                            .buckets = given.buckets,
                            .late_ring = !given.no_late_ring,
                            .history_ring = !given.no_history_ring,
                            .survivors = given.survivors};
  const auto heat = [&] { return make_heat(given, volume_blocks, options.span, writes); };
  if (given.policy == "fifo") return make_fifo(given.moved_max);
  if (given.policy == "greedy") return make_greedy(given.moved_max, false);
  if (given.policy == "greedy-keep") return make_greedy(given.moved_max, true);
  if (given.policy == "cost-benefit") return make_cost_benefit(given.moved_max);
  if (given.policy == "generations")
    return make_generations(given.moved_max, given.young, given.adopt);
  if (given.policy == "streams") return make_streams(options, heat());
  return make_rings(options, heat());
}

void print(const Given& given, double window, const CleanerResult& result) {
  const double volume = given.volume * given.blocks();
  const CleanerLoad& load = given.load;
  std::vector<HeatClass> classes = {{1 - load.hot_writes, (1 - load.hot_blocks) * volume}};
  if (load.hot_writes > 0) classes.push_back({load.hot_writes, load.hot_blocks * volume});
  const CleanerRoom room{.room = given.room(window),
                         .window = window * given.blocks(),
                         .lag = given.lag * given.blocks()};
  fmt::print(
      R"({{"policy":"{}","window":{:g},"amplification":{:.4f},"before_images":{:.4f},"moved":{:.4f},)",
      given.policy, window, result.amplification, result.before_images, result.moved);
  fmt::print(
      R"("holds":{},"held":{:.4f},"held_min":{:.4f},"current":{:.4f},"free":{:.4f},"steady":{},"turns":{:g},)",
      result.holds, result.held, result.held_min, result.current, result.free, result.steady,
      result.turns);
  fmt::print(R"("oracle":{:.4f},"without_tracks":{:.4f},"with_tracks":{:.4f}}})",
             amplification_of_oracle(classes, room), amplification_without_tracks(classes, room),
             amplification_with_tracks(classes, room));
}

void run(const Given& given) {
  const std::uint32_t volume_blocks = given.options(0).volume_blocks;
  const auto turns = std::size_t{CleanerRun::kTurnsMax + CleanerRun::kTurnsMeasured};
  CleanerLoad load = given.load;
  load.change = static_cast<WriteTime>(std::lround(given.change * given.blocks()));
  const Writes writes = make_writes(load, volume_blocks,
                                    turns * static_cast<std::size_t>(given.blocks()), given.seed);
  const char* before = "[";
  for (const double window : given.windows) {
    const std::unique_ptr<CleanerPolicy> policy = make_policy(given, window, volume_blocks, writes);
    CleanerRun cleaner(given.options(window), *policy);
    const CleanerResult result = cleaner.measure(writes);
    fmt::print("{}", std::exchange(before, ",\n "));
    print(given, window, result);
  }
  fmt::print("]\n");
}

}  // namespace
}  // namespace mariner::bench

int main(int argc, char** argv) {
  mariner::bench::Given given;
  CLI::App app("Models ways to clean a log that goes round");
  app.add_option("POLICY", given.policy)
      ->required()
      ->check(CLI::IsMember(
          {"fifo", "greedy", "greedy-keep", "cost-benefit", "generations", "streams", "rings"}));
  app.add_option("--heat", given.heat)
      ->check(CLI::IsMember({"last", "bloom", "rate", "swept", "future"}));
  const CLI::Range share(0.0, 1.0);
  app.add_option("--hot-writes", given.load.hot_writes, "share of the writes; 0: all blocks alike")
      ->check(share);
  app.add_option("--hot-blocks", given.load.hot_blocks, "share of the volume")->check(share);
  app.add_option("--change", given.change, "host writes until other blocks are hot; 0: never")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--windows", given.windows)->delimiter(',')->check(CLI::Range(0.01, 0.95));
  app.add_option("--volume", given.volume)->check(CLI::Range(0.001, 10.0));
  app.add_option("--lag", given.lag, "of the image")->check(share);
  app.add_option("--tracks", given.tracks)->check(CLI::Range(64, 1 << 16));
  app.add_option("--track-blocks", given.track_blocks)->check(CLI::Range(1, 1 << 12));
  app.add_option("--moved-max", given.moved_max, "of a track that is freed")->check(share);
  app.add_option("--span", given.span,
                 "that foretells heat, as a multiple of the room beside history")
      ->check(CLI::Range(0.001, 100.0));
  app.add_option("--memory", given.memory, "of counted writes, in spans")
      ->check(CLI::Range(0.001, 100.0));
  app.add_option("--buckets", given.buckets, "of history in streams")->check(CLI::Range(1, 8));
  app.add_option("--survivors", given.survivors,
                 "in rings: of a hot track, that lead the span; 1: it stays")
      ->check(share);
  app.add_flag("--no-late-ring", given.no_late_ring, "in rings: what survives goes to the hot one");
  app.add_flag("--no-history-ring", given.no_history_ring, "in rings: history goes to the hot one");
  app.add_option("--young", given.young, "generation")->check(share);
  app.add_option("--adopt", given.adopt, "young tracks with this share of history; above 1: none")
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("--seed", given.seed);
  CLI11_PARSE(app, argc, argv);
  mariner::bench::run(given);
}
