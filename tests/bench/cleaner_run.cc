#include "tests/bench/cleaner_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {

std::vector<std::uint32_t> make_writes(const CleanerLoad& load, std::uint32_t volume_blocks,
                                       std::size_t writes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return static_cast<std::uint32_t>(random() % end); };
  const auto hot = static_cast<std::uint32_t>(std::lround(load.hot_blocks * volume_blocks));
  CHECK(hot < volume_blocks && (hot > 0 || load.hot_writes == 0));
  const double hot_to = load.hot_writes * 0x1p64;
  std::vector<std::uint32_t> blocks(writes);
  for (std::size_t i = 0; i < writes; ++i) {
    const std::size_t first_hot = load.change == 0 ? 0 : i / load.change * hot;
    const bool is_hot = static_cast<double>(random()) < hot_to;
    const std::size_t block = first_hot + (is_hot ? below(hot) : hot + below(volume_blocks - hot));
    blocks[i] = static_cast<std::uint32_t>(block % volume_blocks);
  }
  return blocks;
}

CleanerRun::CleanerRun(const CleanerLogOptions& options, CleanerPolicy& policy,
                       std::function<void(const CleanerModel&)> after_write)
    : model_(options),
      policy_(policy),
      after_write_(std::move(after_write)),
      kept_free_(std::max(kStreamsMax,
                          static_cast<std::uint32_t>(std::lround(kKeptFree * options.tracks)))) {
  CHECK(kept_free_ < options.tracks);
}

void CleanerRun::write(std::uint32_t block) {
  const CleanerPolicy::Streams streams = policy_.streams_of(model_, block);
  model_.write(block, streams.written, streams.before_image);
  policy_.settle(model_);
  // In steps, because each try looks at all tracks.
  const std::uint32_t step = std::max(1u, model_.options().track_blocks / 16);
  while (model_.free_tracks() < kept_free_) {
    if (policy_.clean(model_)) continue;
    CHECK_MSG(model_.horizon() < model_.now(), "the log is too small for any window");
    for (std::uint32_t i = 0; i < step && model_.horizon() < model_.now(); ++i) model_.shorten();
  }
  if (after_write_) after_write_(model_);
}

CleanerResult CleanerRun::measure(std::span<const std::uint32_t> writes) {
  const std::uint64_t turn = model_.blocks();
  CHECK(writes.size() >= turn * (kTurnsMax + kTurnsMeasured));
  std::size_t next = 0;
  CleanerResult out;
  double before = 0;
  for (unsigned turns = 1; turns <= kTurnsMax && !out.steady; ++turns) {
    const CleanerModel::Counts begin = model_.counts();
    for (std::uint64_t i = 0; i < turn; ++i) write(writes[next++]);
    const double appended = static_cast<double>(
        model_.counts().before_images - begin.before_images + model_.counts().moved - begin.moved);
    const double now = 1 + appended / static_cast<double>(turn);
    out.steady = turns >= kTurnsMin && std::abs(now - before) < 0.01 * now;
    before = now;
  }
  out.turns = static_cast<double>(next) / static_cast<double>(turn);

  const CleanerModel::Counts begin = model_.counts();
  const std::uint64_t measured = turn * kTurnsMeasured;
  const auto of_log = [&](double blocks) { return blocks / static_cast<double>(turn); };
  std::uint64_t held = 0, current = 0, free = 0;
  std::uint64_t held_min = turn;
  for (std::uint64_t i = 0; i < measured; ++i) {
    write(writes[next++]);
    const std::uint64_t back = model_.now() - model_.horizon();
    held += back;
    held_min = std::min(held_min, back);
    current += model_.current_in_log();
    free += model_.free_tracks();
  }
  const CleanerModel::Counts& end = model_.counts();
  const auto each = [&](std::uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(measured);
  };
  out.before_images = each(end.before_images - begin.before_images);
  out.moved = each(end.moved - begin.moved);
  out.amplification = 1 + out.before_images + out.moved;
  out.held = of_log(each(held));
  out.held_min = of_log(static_cast<double>(held_min));
  out.holds = held_min >= model_.options().window;
  out.current = of_log(each(current));
  out.free = each(free) / model_.options().tracks;
  return out;
}

}  // namespace mariner::bench
