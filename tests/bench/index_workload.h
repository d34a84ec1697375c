// Which blocks are written, one after another: made from a seed, the same on every machine.
//
// kUniform: each block as likely as any other. kSequential: block 0, 1, ... and again from 0.
// kClustered: kClusterBlocks consecutive blocks from a random start, then the next start
// (dissertation 3.4.1, used in 3.4.3).
//
// kKeyRangeHot: hot and cold ranges with hot and cold blocks in them, after Cao et al.,
// "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook", FAST '20,
// section 6, as db_bench's "mixgraph" does it. Found in the descriptions of RocksDB's changes 4788
// (the model inside a range) and 5953 (the ranges, with the numbers below as its example), and the
// same numbers in several published scripts for db_bench, where "Prefix_dist" is both distributions
// together ("All_dist" is the second over one range, "Prefix_random" the first with uniform keys):
// - The blocks are divided into kRanges = 30 ranges of one size; what is left over is not used.
//   (keyrange_num=30)
// - Range x of 1..30 is as hot as f(x) = a e^(b x) + c e^(d x), with a = 14.18, b = -2.917,
//   c = 0.0164, d = -0.08082 (keyrange_dist_a..d), in whole multiples of the coldest. About four of
//   five draws come from the hottest range. Ranges are then mixed, so that heat is not in order.
// - In a range the block of rank r has the cumulated share a r^b with a = 0.002312, b = 0.3467
//   (key_dist_a, key_dist_b), so that ranks go up to 4.0e7; the hottest block has 0.23 % of its
//   range. A hash of the rank gives the block's place in its range: with fewer blocks than ranks
//   several ranks share a block.
// Two differences to db_bench: it takes range and rank from one random number, here they are
// independent; and its hash is another one. Which blocks are hot does not depend on the seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace mariner::bench {

// In [0, below), from 64 random bits.
[[nodiscard]] inline std::uint64_t scaled(std::uint64_t random, std::uint64_t below) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{random} * below) >> 64);
}
// In [0, 1).
[[nodiscard]] inline double unit_of(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1p-53;
}
// 64 bits that look random (SplitMix64).
[[nodiscard]] std::uint64_t mixed(std::uint64_t number);

class BlockWorkload {
 public:
  enum class Pattern { kUniform, kKeyRangeHot, kClustered, kSequential };

  static constexpr std::uint64_t kClusterBlocks = 32;
  static constexpr std::uint64_t kRanges = 30;

  struct Options {
    Pattern pattern = Pattern::kUniform;
    std::uint64_t blocks = 0;  // at least kClusterBlocks
    std::uint64_t seed = 1;
  };
  explicit BlockWorkload(const Options& options);

  // In [0, blocks).
  [[nodiscard]] std::uint64_t next();

 private:
  [[nodiscard]] std::uint64_t next_hot();

  const Options options_;
  std::mt19937_64 random_;
  std::uint64_t at_ = 0;                 // of a run of consecutive blocks
  std::uint64_t left_ = 0;               // of a cluster
  std::vector<std::uint64_t> heat_end_;  // by range: where its part of all the heat ends
};

}  // namespace mariner::bench
