#include "tests/bench/cleaner_heat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr WriteTime kNever = std::numeric_limits<WriteTime>::max();
constexpr unsigned kWordBits = 64;

// The finalizer of MurmurHash3.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}

}  // namespace

bool LastWriteHeat::is_hot(std::uint32_t block, double span) {
  const WriteTime last = last_[block];
  last_[block] = ++now_;
  return last != 0 && now_ - last <= span;
}

bool RateHeat::is_hot(std::uint32_t block, double span) {
  Count& count = counts_[block];
  ++now_;
  count.value *= std::exp(-static_cast<double>(now_ - count.at) / memory_);
  count.at = now_;
  const bool hot = count.value * span >= memory_;
  ++count.value;
  return hot;
}

SweptHeat::SweptHeat(std::uint32_t volume_blocks, double memory)
    : memory_(memory),
      step_(volume_blocks / (memory * std::numbers::ln2)),
      counts_(volume_blocks) {}

bool SweptHeat::is_hot(std::uint32_t block, double span) {
  const auto first = static_cast<std::size_t>(hand_);
  hand_ += step_;
  for (auto i = first; i < static_cast<std::size_t>(hand_); ++i) counts_[i % counts_.size()] /= 2;
  if (hand_ >= static_cast<double>(counts_.size())) hand_ -= static_cast<double>(counts_.size());
  std::uint8_t& count = counts_[block];
  const bool hot = count >= kMost || count * span >= memory_;
  if (count < kMost) ++count;
  return hot;
}

BloomHeat::BloomHeat(std::size_t bits)
    : mask_(bits - 1), young_(bits / kWordBits), old_(bits / kWordBits) {
  CHECK(std::has_single_bit(bits) && bits >= kWordBits);
}

bool BloomHeat::has(const Filter& filter, const Bits& bits) {
  return std::ranges::all_of(
      bits, [&](std::size_t bit) { return filter[bit / kWordBits] >> bit % kWordBits & 1; });
}

bool BloomHeat::is_hot(std::uint32_t block, double span) {
  if (in_young_ >= span / 2) {
    std::swap(young_, old_);
    std::ranges::fill(young_, 0);
    in_young_ = 0;
  }
  const std::uint64_t hash = mixed(block + 1);
  Bits bits;
  for (unsigned i = 0; i < kHashes; ++i) bits[i] = (hash + i * (hash >> 32 | 1)) & mask_;
  const bool hot = has(young_, bits) || has(old_, bits);
  for (const std::size_t bit : bits) young_[bit / kWordBits] |= std::uint64_t{1} << bit % kWordBits;
  ++in_young_;
  return hot;
}

FutureHeat::FutureHeat(std::span<const std::uint32_t> blocks, std::uint32_t volume_blocks)
    : until_next_(blocks.size(), kNever) {
  std::vector<std::size_t> next(volume_blocks, blocks.size());
  for (std::size_t i = blocks.size(); i-- > 0;) {
    std::size_t& again = next[blocks[i]];
    if (again != blocks.size()) until_next_[i] = static_cast<WriteTime>(again - i);
    again = i;
  }
}

bool FutureHeat::is_hot(std::uint32_t, double span) { return until_next_[now_++] <= span; }

}  // namespace mariner::bench
