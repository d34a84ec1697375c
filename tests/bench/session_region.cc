#include "tests/bench/session_region.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

// How far from where chance fell a block is looked for.
constexpr std::uint64_t kProbesMax = 64;

}  // namespace

SessionRegion::SessionRegion(const Options& options, const StampedContents& contents)
    : options_(options), contents_(contents), blocks_(options.blocks), random_(options.seed) {
  CHECK(options.blocks > 0 && options.reads <= 100);
}

std::optional<SessionRegion::Command> SessionRegion::next_to_fill() {
  while (filled_ < blocks_.size() && (blocks_[filled_].latest > 0 || blocks_[filled_].busy)) {
    ++filled_;
  }
  if (filled_ == blocks_.size()) return std::nullopt;
  return begin(filled_++, true);
}

std::optional<SessionRegion::Command> SessionRegion::next_to_verify(Time now) {
  if (all_verified() || !usable(verified_, now)) return std::nullopt;
  return begin(verified_++, false);
}

std::optional<SessionRegion::Command> SessionRegion::next(Time now) {
  const std::uint64_t first = random_() % blocks_.size();
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(kProbesMax, blocks_.size()); ++i) {
    const std::uint64_t block = (first + i) % blocks_.size();
    if (!usable(block, now)) continue;
    const bool write = blocks_[block].latest == 0 || random_() % 100 >= options_.reads;
    return begin(block, write);
  }
  return std::nullopt;
}

bool SessionRegion::usable(std::uint64_t block, Time now) const {
  if (blocks_[block].busy) return false;
  const auto found = losses_.find(block);
  return found == losses_.end() || now >= found->second.until;
}

SessionRegion::Command SessionRegion::begin(std::uint64_t block, bool write) {
  State& state = blocks_[block];
  CHECK(!state.busy);
  state.busy = true;
  if (write) ++state.latest;
  return {.block = block, .write = write, .generation = write ? state.latest : 0};
}

SessionRegion::State& SessionRegion::end(const Command& command) {
  State& state = blocks_[command.block];
  CHECK(state.busy);
  state.busy = false;
  return state;
}

void SessionRegion::fill(StampedContents::Block out, const Command& write) const {
  CHECK(write.write);
  contents_.fill(out, stamp(write.block, write.generation));
}

void SessionRegion::settle(State& state) {
  if (std::exchange(state.uncertain, false)) --uncertain_;
}

void SessionRegion::written(const Command& write) {
  CHECK(write.write);
  State& state = end(write);
  state.acknowledged = write.generation;
  losses_.erase(write.block);
  settle(state);
}

void SessionRegion::lost(const Command& command, Loss loss) {
  State& state = end(command);
  if (!command.write) return;
  if (!std::exchange(state.uncertain, true)) ++uncertain_;
  losses_[command.block] = std::move(loss);
}

SessionRegion::Finding SessionRegion::read(const Command& read, StampedContents::ConstBlock bytes) {
  CHECK(!read.write);
  State& state = end(read);
  const auto holds = [&](std::uint32_t generation) {
    return contents_.holds(bytes, stamp(read.block, generation));
  };
  if (state.acknowledged > 0 && holds(state.acknowledged)) {
    settle(state);
    return {};
  }
  for (std::uint32_t generation = state.latest; generation > state.acknowledged; --generation) {
    if (!holds(generation)) continue;
    const std::uint32_t before = std::exchange(state.acknowledged, generation);
    const bool late = !state.uncertain;
    settle(state);
    if (!late) return {};
    return {.kind = Finding::Kind::kLate,
            .text = fmt::format("session {}, block {}: generation {} ({}) where {} was read before",
                                options_.session, read.block, generation,
                                losses_.at(read.block).why, before)};
  }
  // Of a block of which no write was acknowledged nothing can be told.
  if (state.acknowledged == 0) return {};
  return {.kind = Finding::Kind::kWrong,
          .text = fmt::format(
              "session {}, block {}: expected generation {}{}, found {}", options_.session,
              read.block, state.acknowledged,
              state.uncertain ? fmt::format(" or up to {}", state.latest) : std::string(),
              contents_.difference(bytes, stamp(read.block, state.acknowledged)).value())};
}

}  // namespace mariner::bench
