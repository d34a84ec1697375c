// What foretells whether a block that is being written will be written again soon.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/bench/cleaner_model.h"

namespace mariner::bench {

class CleanerHeat {
 public:
  virtual ~CleanerHeat() = default;
  // Called once for each write, in order, before it is made. Whether the new version belongs to the
  // hot ones: `span` is how many host writes are soon.
  virtual bool is_hot(std::uint32_t block, double span) = 0;
};

// Hot is what was written within the span before: the time of each block's last write.
class LastWriteHeat : public CleanerHeat {
 public:
  explicit LastWriteHeat(std::uint32_t volume_blocks) : last_(volume_blocks) {}
  bool is_hot(std::uint32_t block, double span) override;

 private:
  std::vector<WriteTime> last_;  // by block; 0: never
  WriteTime now_ = 0;
};

// Hot is what has been written, on average, once in a span or more often: a count of each block's
// writes, of which an old one counts for less, exp(-age / memory).
class RateHeat : public CleanerHeat {
 public:
  // `memory`: host writes.
  RateHeat(std::uint32_t volume_blocks, double memory) : memory_(memory), counts_(volume_blocks) {}
  bool is_hot(std::uint32_t block, double span) override;

 private:
  struct Count {
    double value = 0;
    WriteTime at = 0;
  };
  const double memory_;
  std::vector<Count> counts_;  // by block
  WriteTime now_ = 0;
};

// The same for half a byte of memory per block of the volume: a hand goes round the counts and
// halves each, once in `memory` * ln 2 writes.
class SweptHeat : public CleanerHeat {
 public:
  SweptHeat(std::uint32_t volume_blocks, double memory);
  bool is_hot(std::uint32_t block, double span) override;

 private:
  static constexpr std::uint8_t kMost = 15;
  const double memory_;
  const double step_;                 // counts that are halved for a write
  std::vector<std::uint8_t> counts_;  // by block
  double hand_ = 0;
};

// What LastWriteHeat says, for a byte or two of memory per write of the span: two Bloom filters,
// one of which takes what is written, until half a span has passed; then it is the other's turn,
// which is emptied. So what is found was written within half a span to a whole one, but for the
// filters' errors.
class BloomHeat : public CleanerHeat {
 public:
  // `bits`: of each filter, a power of two.
  explicit BloomHeat(std::size_t bits);
  bool is_hot(std::uint32_t block, double span) override;

 private:
  static constexpr unsigned kHashes = 4;
  using Filter = std::vector<std::uint64_t>;
  using Bits = std::size_t[kHashes];
  [[nodiscard]] static bool has(const Filter& filter, const Bits& bits);

  const std::size_t mask_;
  Filter young_;
  Filter old_;
  WriteTime in_young_ = 0;
};

// Hot is what will be written again within the span: it knows the future.
class FutureHeat : public CleanerHeat {
 public:
  // All writes that there will be.
  FutureHeat(std::span<const std::uint32_t> blocks, std::uint32_t volume_blocks);
  bool is_hot(std::uint32_t block, double span) override;

 private:
  std::vector<WriteTime> until_next_;  // of each write, kNever if there is none
  std::size_t now_ = 0;
};

}  // namespace mariner::bench
