#include "tests/bench/stamped_volume.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "proto/check.h"

namespace mariner::bench {
namespace {

// A step of SplitMix64.
std::uint64_t mixed(std::uint64_t& state) {
  std::uint64_t value = state += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

StampedVolume::StampedVolume(const Options& options) : options_(options) {
  CHECK(options.blocks > 0);
  for (Phase phase = 1; phase <= options.phases; ++phase) {
    for (const Lbn block : written_in(phase)) writes_.emplace_back(block.value, phase);
  }
  std::sort(writes_.begin(), writes_.end());
}

std::vector<Lbn> StampedVolume::written_in(Phase phase) const {
  CHECK(phase > 0);
  std::mt19937_64 random(options_.seed << 32 | phase);
  std::vector<std::uint64_t> numbers(options_.phase_blocks);
  for (std::uint64_t& number : numbers) number = random() % options_.blocks;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<Lbn> blocks;
  for (const std::uint64_t number : numbers) blocks.push_back(Lbn{number});
  return blocks;
}

StampedVolume::Phase StampedVolume::last_write(Lbn block, Phase phase) const {
  const auto after =
      std::upper_bound(writes_.begin(), writes_.end(), std::pair{block.value, phase});
  if (after == writes_.begin() || std::prev(after)->first != block.value) return 0;
  return std::prev(after)->second;
}

void StampedVolume::fill(Block out, Lbn block, Phase phase) const {
  std::uint64_t state = options_.seed;
  state = mixed(state) + block.value;
  state = mixed(state) + phase;
  for (std::size_t at = 0; at < out.size(); at += sizeof state) {
    const std::uint64_t word = mixed(state);
    std::memcpy(out.data() + at, &word, sizeof word);
  }
}

bool StampedVolume::shows(ConstBlock bytes, Lbn block, Phase phase) const {
  alignas(8) std::array<std::byte, kBlockBytes> expected;
  fill(expected, block, last_write(block, phase));
  return std::memcmp(bytes.data(), expected.data(), kBlockBytes) == 0;
}

}  // namespace mariner::bench
