#include "index/run_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace mariner::index {
namespace {

BlockRange blocks(std::uint64_t first, std::uint64_t count) {
  return {Lbn{first}, BlockCount{count}};
}

bool covers(const std::vector<KeyRange>& keys, AlignedRun run, std::uint64_t low,
            std::uint64_t high) {
  return std::ranges::any_of(keys, [&](const KeyRange& range) {
    return range.contains({run.key(), low}) && range.contains({run.key(), high});
  });
}

TEST(RunTree, SegmentsAreShownInOrderAndWholeOnesAtOnce) {
  const std::vector<BlockRange> ranges{blocks(3, 2), blocks(511, 2), blocks(600, 512 * 4),
                                       blocks(512 * 9 + 1, 1)};
  std::vector<std::pair<BlockRange, std::size_t>> shown;
  by_segment(ranges, [&](BlockRange segments, std::span<const BlockRange> part) {
    shown.emplace_back(segments, part.size());
  });
  EXPECT_EQ(shown, (std::vector<std::pair<BlockRange, std::size_t>>{{blocks(0, 512), 2},
                                                                    {blocks(512, 512), 2},
                                                                    {blocks(1024, 3 * 512), 1},
                                                                    {blocks(2560, 512), 1},
                                                                    {blocks(512 * 9, 512), 1}}));
}

TEST(RunTree, TheKeysOfABlockAreThoseOfTheRunsAroundIt) {
  LargeLevels levels;
  levels.add(5);
  const BlockRange block = blocks(5 * 512 + 77, 1);
  std::vector<KeyRange> expected;
  for (const unsigned level : {0u, 1u, 2u, 3u, 5u}) {
    const std::uint64_t key = AlignedRun::containing(block.first.value, level).key();
    expected.push_back({{key, 10}, {key, 20}});
  }
  EXPECT_EQ(keys_of_runs(std::vector{block}, levels, 10, 20), expected);
}

TEST(RunTree, AWholeVolumeIsOneRangeOfKeys) {
  const std::vector<KeyRange> keys =
      keys_of_runs(std::vector{blocks(0, kIndexedBlocksMax)}, LargeLevels(), 1, UINT64_MAX);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].low, (IndexKey{0, 1}));
  EXPECT_EQ(keys[0].high, (IndexKey{kFirstLargeKey - 1, UINT64_MAX}));
}

TEST(RunTree, WhereMuchOfASegmentIsAskedForAllOfItIs) {
  std::vector<BlockRange> ranges;
  for (std::uint64_t i = 0; i < 200; ++i) ranges.push_back(blocks(512 + 2 * i, 1));
  EXPECT_EQ(keys_of_runs(ranges, LargeLevels(), 0, 9),
            (std::vector<KeyRange>{{{first_key_of_segment(1), 0}, {last_key_of_segment(1), 9}}}));
}

TEST(RunTree, NoRunThatHasABlockIsLeftOut) {
  std::mt19937_64 random(7);
  LargeLevels levels;
  levels.add(4);
  levels.add(7);
  for (int round = 0; round < 80; ++round) {
    std::vector<BlockRange> ranges;
    const std::uint64_t gap = 1 + (std::uint64_t{1} << random() % 14);
    std::uint64_t next = random() % 5'000;
    for (std::uint64_t i = 1 + random() % 60; i > 0; --i) {
      const std::uint64_t count = random() % 8 == 0 ? 1 + random() % 3'000 : 1 + random() % 5;
      ranges.push_back(blocks(next, count));
      next += count + random() % gap;
    }
    const std::vector<KeyRange> keys = keys_of_runs(ranges, levels, 3, 8);
    for (std::size_t i = 1; i < keys.size(); ++i) ASSERT_LT(keys[i - 1].high, keys[i].low);
    for (const BlockRange& range : ranges) {
      for (std::uint64_t block = range.first.value; block < range.end().value; ++block) {
        for (const unsigned level : {0u, 1u, 2u, 3u, 4u, 7u}) {
          ASSERT_TRUE(covers(keys, AlignedRun::containing(block, level), 3, 8))
              << "block " << block << " of " << ranges.size() << ", level " << level;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mariner::index
