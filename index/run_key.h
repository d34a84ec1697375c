// How extents of blocks become keys of the LT index: runs of 8^level blocks, aligned to their size.
//
// An extent is cut into such runs (at most 14 a level), so that a large write costs few entries and
// a lookup is exact: the versions of a block are those of the runs that contain it, one a level.
// Keys of the levels up to a segment (512 blocks, 2 MiB) stand together by segment, so that a
// lookup finds all of them in one leaf, mostly; those of larger runs stand behind all segments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "proto/check.h"
#include "proto/units.h"

namespace mariner::index {

inline constexpr unsigned kRunFanoutBits = 3;
inline constexpr unsigned kRunLevels = 14;  // the largest run has 8^13 blocks: 2 PiB
inline constexpr unsigned kSegmentLevel = 3;
inline constexpr unsigned kSegmentBits = kSegmentLevel * kRunFanoutBits;
inline constexpr std::uint64_t kSegmentBlocks = std::uint64_t{1} << kSegmentBits;
// The largest volume that is indexed.
inline constexpr std::uint64_t kIndexedBlocksMax = std::uint64_t{1}
                                                   << ((kRunLevels - 1) * kRunFanoutBits);

struct AlignedRun {
  unsigned level = 0;
  std::uint64_t number = 0;  // of the run among those of its level

  friend constexpr auto operator<=>(const AlignedRun&, const AlignedRun&) = default;

  [[nodiscard]] static constexpr AlignedRun containing(std::uint64_t block, unsigned level) {
    return {level, block >> (level * kRunFanoutBits)};
  }
  [[nodiscard]] constexpr BlockRange blocks() const {
    const unsigned shift = level * kRunFanoutBits;
    return {Lbn{number << shift}, BlockCount{std::uint64_t{1} << shift}};
  }
  // The high half of its versions' keys.
  //   up to a segment:  [segment 30 bits][level 2][run within the segment 9]
  //   larger:           [1][level 4][number 36]
  [[nodiscard]] constexpr std::uint64_t key() const {
    if (level > kSegmentLevel) {
      return (std::uint64_t{1} << 41) | (std::uint64_t{level} << 36) | number;
    }
    const unsigned in_segment_bits = (kSegmentLevel - level) * kRunFanoutBits;
    const std::uint64_t in_segment = number & ((std::uint64_t{1} << in_segment_bits) - 1);
    return (number >> in_segment_bits) << (kSegmentBits + 2) |
           (std::uint64_t{level} << kSegmentBits) | in_segment;
  }
  [[nodiscard]] static constexpr AlignedRun of_key(std::uint64_t key) {
    if ((key >> 41) != 0) {
      return {static_cast<unsigned>(key >> 36 & 15), key & ((std::uint64_t{1} << 36) - 1)};
    }
    const auto level = static_cast<unsigned>(key >> kSegmentBits & 3);
    const unsigned in_segment_bits = (kSegmentLevel - level) * kRunFanoutBits;
    return {level, key >> (kSegmentBits + 2) << in_segment_bits | (key & (kSegmentBlocks - 1))};
  }
};

// The keys of a segment's runs lie in [first, last].
[[nodiscard]] constexpr std::uint64_t first_key_of_segment(std::uint64_t segment) {
  return segment << (kSegmentBits + 2);
}
[[nodiscard]] constexpr std::uint64_t last_key_of_segment(std::uint64_t segment) {
  return first_key_of_segment(segment + 1) - 1;
}
[[nodiscard]] constexpr std::uint64_t segment_of_key(std::uint64_t key) {
  return key >> (kSegmentBits + 2);
}
// Keys of larger runs are at or above this one.
inline constexpr std::uint64_t kFirstLargeKey = std::uint64_t{1} << 41;

// Calls use(AlignedRun) for each run that the extent is cut into, in order.
template <typename Use>
void cut_extent(BlockRange extent, Use use) {
  CHECK(extent.end().value <= kIndexedBlocksMax);
  std::uint64_t at = extent.first.value;
  const std::uint64_t end = extent.end().value;
  while (at < end) {
    // The largest aligned run that begins here and fits.
    const unsigned aligned = at == 0 ? 63u : static_cast<unsigned>(std::countr_zero(at));
    const auto fits = static_cast<unsigned>(std::bit_width(end - at) - 1);
    const unsigned level =
        std::min({aligned, fits, (kRunLevels - 1) * kRunFanoutBits}) / kRunFanoutBits;
    use(AlignedRun::containing(at, level));
    at += std::uint64_t{1} << (level * kRunFanoutBits);
  }
}

static_assert(AlignedRun::of_key(AlignedRun{2, 12345}.key()) == AlignedRun{2, 12345});
static_assert(AlignedRun::of_key(AlignedRun{0, kIndexedBlocksMax - 1}.key()) ==
              AlignedRun{0, kIndexedBlocksMax - 1});
static_assert(AlignedRun{0, kIndexedBlocksMax - 1}.key() < kFirstLargeKey);
static_assert(AlignedRun::of_key(AlignedRun{7, 99}.key()) == AlignedRun{7, 99});

}  // namespace mariner::index
