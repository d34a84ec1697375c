#include "ifsck/volume_ranges.h"

#include <gtest/gtest.h>

namespace mariner::ifsck {
namespace {

BlockRange range(std::uint64_t first, std::uint64_t count) {
  return {Lbn{first}, BlockCount{count}};
}

TEST(VolumeRanges, AreAscendingWithGaps) {
  std::vector<BlockRange> ranges{range(10, 5), range(1, 2), range(15, 1),
                                 range(12, 1), range(3, 1), range(20, 0)};
  normalize(ranges);
  EXPECT_EQ(ranges[0], range(1, 3));
  EXPECT_EQ(ranges[1], range(10, 6));
  EXPECT_EQ(count_blocks(ranges), 9u);
  std::vector<std::uint64_t> all;
  for_each_block(ranges, [&](Lbn lbn) { all.push_back(lbn.value); });
  EXPECT_EQ(all, (std::vector<std::uint64_t>{1, 2, 3, 10, 11, 12, 13, 14, 15}));
}

TEST(VolumeRanges, HaveThoseOfAnOverlay) {
  Overlay overlay;
  overlay.put(Lbn{7}, std::vector<std::byte>(kBlockBytes));
  std::vector<BlockRange> ranges{range(8, 1)};
  add_overlay(overlay, ranges);
  normalize(ranges);
  EXPECT_EQ(ranges, std::vector<BlockRange>{range(7, 2)});
}

}  // namespace
}  // namespace mariner::ifsck
