#include "trm-multicast/byte_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace mariner::trm {
namespace {

using Range = ByteRanges::Range;
constexpr std::uint32_t kBytes = 64;

TEST(ByteRanges, InOrderAreOne) {
  ByteRanges ranges;
  for (std::uint32_t at = 0; at < 50; at += 10) ranges.add({at, at + 10});
  ASSERT_EQ(ranges.list().size(), 1u);
  EXPECT_EQ(ranges.list().front(), (Range{0, 50}));
}

TEST(ByteRanges, AreAsABitForEachByteHasThem) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  for (int round = 0; round < 500; ++round) {
    ByteRanges ranges;
    std::bitset<kBytes> model;
    for (int i = 0; i < 20; ++i) {
      const std::uint32_t begin = below(kBytes);
      const std::uint32_t end = begin + 1 + below(std::min(12u, kBytes - begin));
      ranges.add({begin, end});
      for (std::uint32_t at = begin; at < end; ++at) model.set(at);

      const std::uint32_t from = below(kBytes);
      const std::uint32_t to = from + 1 + below(kBytes - from);
      bool all = true;
      bool any = false;
      std::bitset<kBytes> missing;
      for (std::uint32_t at = from; at < to; ++at) {
        all &= model[at];
        any |= model[at];
        missing[at] = !model[at];
      }
      ASSERT_EQ(ranges.contains({from, to}), all);
      ASSERT_EQ(ranges.overlaps({from, to}), any);
      std::bitset<kBytes> gaps;
      for (const Range& gap : ranges.gaps({from, to})) {
        ASSERT_LT(gap.begin, gap.end);
        for (std::uint32_t at = gap.begin; at < gap.end; ++at) gaps.set(at);
      }
      ASSERT_EQ(gaps, missing);
    }
    for (std::size_t i = 1; i < ranges.list().size(); ++i) {
      ASSERT_LT(ranges.list()[i - 1].end, ranges.list()[i].begin);
    }
  }
}

}  // namespace
}  // namespace mariner::trm
