#include "tests/bench/index_workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr double kRangeA = 14.18;
constexpr double kRangeB = -2.917;
constexpr double kRangeC = 0.0164;
constexpr double kRangeD = -0.08082;
constexpr double kKeyA = 0.002312;
constexpr double kKeyB = 0.3467;

double heat_of_range(std::uint64_t x) {
  const double position = static_cast<double>(x);
  return kRangeA * std::exp(kRangeB * position) + kRangeC * std::exp(kRangeD * position);
}

// Mixed, in the order of the blocks: the end of each range's part of all the heat.
std::vector<std::uint64_t> heat_ends() {
  const double multiple = std::floor(1 / heat_of_range(BlockWorkload::kRanges)) + 1;
  std::vector<std::uint64_t> heats;
  for (std::uint64_t x = BlockWorkload::kRanges; x >= 1; --x) {
    heats.push_back(static_cast<std::uint64_t>(multiple * heat_of_range(x)));
  }
  for (std::size_t i = 0; i < heats.size(); ++i) {
    std::swap(heats[i], heats[scaled(mixed(i), heats.size())]);
  }
  std::uint64_t end = 0;
  for (std::uint64_t& heat : heats) heat = end += heat;
  return heats;
}

}  // namespace

std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t z = number + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

BlockWorkload::BlockWorkload(const Options& options)
    : options_(options), random_(options.seed), heat_end_(heat_ends()) {
  CHECK(options.blocks >= kClusterBlocks);
}

std::uint64_t BlockWorkload::next() {
  switch (options_.pattern) {
    case Pattern::kUniform: return scaled(random_(), options_.blocks);
    case Pattern::kKeyRangeHot: return next_hot();
    case Pattern::kClustered:
      if (left_ == 0) {
        at_ = scaled(random_(), options_.blocks - kClusterBlocks + 1);
        left_ = kClusterBlocks;
      }
      --left_;
      return at_++;
    case Pattern::kSequential: return at_++ % options_.blocks;
  }
  return 0;
}

std::uint64_t BlockWorkload::next_hot() {
  const std::uint64_t heat = scaled(random_(), heat_end_.back());
  const auto range =
      static_cast<std::uint64_t>(std::ranges::upper_bound(heat_end_, heat) - heat_end_.begin());
  const std::uint64_t range_blocks = options_.blocks / kRanges;
  const double rank = std::ceil(std::pow(unit_of(random_()) / kKeyA, 1 / kKeyB));
  return range * range_blocks + scaled(mixed(static_cast<std::uint64_t>(rank)), range_blocks);
}

}  // namespace mariner::bench
