// Which block of a LUN a load reads or writes next. Not thread-safe.
//
// Sequential sessions each have their own part of the region. Hot blocks lie scattered over the
// region, the same ones in every run. Distinct and given blocks are of one session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace mariner::bench {

class BlockPattern {
 public:
  struct Options {
    std::uint64_t first = 0;  // of the region, in blocks of the LUN
    std::uint64_t count = 0;  // the region's blocks
    bool random = false;
    std::size_t session = 0;
    std::size_t sessions = 1;
    std::uint64_t seed = 1;
    // Of a random load: so many percent of it go to so many percent of the blocks.
    unsigned hot_load = 0;
    unsigned hot_blocks = 0;
    // So many blocks, each once before any comes again: the same ones with every seed. 0: as the
    // rest says.
    std::uint64_t distinct = 0;
    // These blocks of the region, in their order, again and again. Empty: as the rest says.
    std::vector<std::uint32_t> blocks = {};
  };

  explicit BlockPattern(const Options& options);

  // False: the region has no block for this session, or not all of Options::blocks.
  [[nodiscard]] bool valid() const;
  // A block of the LUN. Only if valid().
  std::uint64_t next();

 private:
  std::uint64_t scattered();
  void choose(std::uint64_t count);

  bool random_;
  unsigned hot_load_;
  std::uint64_t hot_count_ = 0;
  std::uint64_t stride_ = 2'654'435'761;  // shares no factor with the number of blocks
  std::mt19937_64 engine_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t position_ = 0;
  std::vector<std::uint32_t> chosen_;
};

}  // namespace mariner::bench
