// Which blocks of a volume were written in which stretch of its sequence numbers, for a while and
// in coarse steps: what was overwritten before the horizon need not be looked up in the index, of
// which each block may be another read.
//
// It only ever says what is so. Of what came before a start, of long extents, and of writes that
// are spread thinly over a large volume it knows nothing, and says nothing.
//
// Owner's thread only; the periods are complete, and any thread may read them.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/units.h"

namespace mariner::index {

// The blocks that were written with the numbers from `first` to `last`.
class WritePeriod {
 public:
  SequenceNumber first;
  SequenceNumber last;
  std::size_t writes = 0;

  void add(BlockRange range);
  void add(const WritePeriod& neighbour);
  [[nodiscard]] bool contains(Lbn block) const;
  [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }

 private:
  static constexpr unsigned kChunkShift = 9;  // blocks of a chunk, as a power of two
  static constexpr std::uint64_t kWordBits = 64;
  using Chunk = std::array<std::uint64_t, (1u << kChunkShift) / kWordBits>;

  boost::unordered_flat_map<std::uint64_t, Chunk> chunks_;
};

class RecentWrites {
 public:
  using Periods = std::vector<std::shared_ptr<const WritePeriod>>;

  // Of one period: a sixteenth of all that are remembered, within these.
  static constexpr std::size_t kWritesMin = 256;
  static constexpr std::size_t kWritesMax = 65536;
  // Writes that touch more of these (of 2 MiB each) are spread too thinly to be of use.
  static constexpr std::size_t kChunksMax = 8192;
  // About 10 MiB, when all of them are as large as they may be.
  static constexpr std::size_t kPeriodsMax = 8;
  // What is longer is not remembered.
  static constexpr std::uint64_t kBlocksMax = 4096;

  void add(BlockRange range, SequenceNumber sequence);
  // Nobody asks about these any more.
  void forget_through(SequenceNumber sequence);

  // Those that lie within (after, through].
  [[nodiscard]] Periods within(SequenceNumber after, SequenceNumber through) const;

 private:
  [[nodiscard]] std::size_t writes_of_one() const;
  void close();

  std::unique_ptr<WritePeriod> open_;
  Periods closed_;  // by number
};

// What is left of `ranges`, which ascend, without the blocks that were written in any of `periods`.
[[nodiscard]] std::vector<BlockRange> without_written(std::span<const BlockRange> ranges,
                                                      const RecentWrites::Periods& periods);

}  // namespace mariner::index
