// Notices who reads one block behind the other, and says what is to be brought into memory before
// it is asked for.
//
// Of large reads only: the kernel reads ahead by itself, commonly 128 KiB, which is enough for
// small ones, and nothing for those that are as long.
//
// Several readers at a time, as many as kStreams: whoever has read least lately is forgotten. What
// is read ahead grows with what has been read in sequence, up to kBlocksMax: a reader that stops
// early has cost little. Commands of one reader may overtake each other a little. Values; owner's
// thread only.
#pragma once

#include <array>
#include <cstdint>

#include "proto/units.h"

namespace mariner::volume {

class ReadAhead {
 public:
  static constexpr std::size_t kStreams = 8;
  static constexpr std::uint64_t kReadBlocksMin = 32;  // shorter reads do not count
  static constexpr std::uint64_t kBlocksMin = 64;      // 256 KiB
  static constexpr std::uint64_t kBlocksMax = 1024;    // 4 MiB
  // Two reads may be next to each other by accident.
  static constexpr unsigned kReadsMin = 3;

  // `range`, which is not empty, is being read of a volume that ends at `end`. What is to be
  // fetched now, all of it behind what was read; empty: nothing.
  [[nodiscard]] BlockRange read(BlockRange range, Lbn end);

 private:
  // A read that begins so near to where the last one ended belongs to the same reader.
  static constexpr std::uint64_t kNearBlocks = 64;

  struct Stream {
    Lbn next;                  // behind the last block that was read
    Lbn asked;                 // behind the last one that was to be fetched
    std::uint64_t blocks = 0;  // that were read in sequence
    unsigned reads = 0;        // 0: nobody's
    std::uint64_t last_read = 0;
  };
  Stream& stream_of(BlockRange range);

  std::array<Stream, kStreams> streams_{};
  std::uint64_t reads_ = 0;
};

}  // namespace mariner::volume
