#include "tests/bench/block_pattern.h"

#include <algorithm>
#include <numeric>

namespace mariner::bench {

BlockPattern::BlockPattern(const Options& options)
    : random_(options.random),
      hot_load_(options.hot_load),
      engine_(options.seed * 1000 + options.session),
      count_(random_ ? options.count : options.count / options.sessions) {
  hot_count_ = count_ * options.hot_blocks / 100;
  if (hot_count_ == 0 || hot_count_ == count_) hot_load_ = 0;
  first_ = options.first + (random_ ? 0 : options.session * count_);
  while (count_ > 0 && std::gcd(stride_, count_) != 1) ++stride_;
  if (options.distinct > 0) choose(options.distinct);
  if (!options.blocks.empty()) chosen_ = options.blocks;
}

bool BlockPattern::valid() const {
  return count_ > 0 && std::ranges::all_of(chosen_, [this](auto at) { return at < count_; });
}

std::uint64_t BlockPattern::next() {
  if (!chosen_.empty()) return first_ + chosen_[position_++ % chosen_.size()];
  return first_ + (random_ ? scattered() : position_++ % count_);
}

std::uint64_t BlockPattern::scattered() {
  if (hot_load_ == 0) return engine_() % count_;
  const bool hot = engine_() % 100 < hot_load_;
  const std::uint64_t rank =
      hot ? engine_() % hot_count_ : hot_count_ + engine_() % (count_ - hot_count_);
  return static_cast<std::uint64_t>(static_cast<__uint128_t>(rank) * stride_ % count_);
}

// In an order of the engine's.
void BlockPattern::choose(std::uint64_t count) {
  chosen_.resize(count_);
  std::iota(chosen_.begin(), chosen_.end(), 0);
  std::ranges::shuffle(chosen_, std::mt19937_64{});
  chosen_.resize(std::min(count, count_));
  std::ranges::shuffle(chosen_, engine_);
}

}  // namespace mariner::bench
