#include "server/volume/block_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace mariner::volume {
namespace {

TEST(BlockSet, IsWhatWasAddedAndNotRemoved) {
  constexpr std::uint64_t kBlocks = 30'000;
  std::mt19937_64 random(5);
  BlockSet set;
  std::vector<bool> model(kBlocks, false);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t first = random() % kBlocks;
    const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(9'000, kBlocks - first);
    const BlockRange range{{first}, {random() % 2 == 0 ? 1 + count % 40 : count}};
    const bool adds = random() % 2 == 0;
    bool changes = false;
    for (std::uint64_t at = first; at < std::min(range.end().value, kBlocks); ++at) {
      changes |= model[at] != adds;
      model[at] = adds;
    }
    const BlockRange part = range.intersect({{0}, {kBlocks}});
    if (adds) {
      EXPECT_EQ(set.add(part), changes);
    } else {
      set.remove(part);
    }
    Lbn next{0};
    set.visit({{0}, {kBlocks}}, [&](BlockRange run, bool in) {
      EXPECT_EQ(run.first, next);
      next = run.end();
      for (Lbn at = run.first; at < run.end(); at = at + BlockCount{1}) {
        ASSERT_EQ(model[at.value], in) << at.value;
      }
    });
    EXPECT_EQ(next, Lbn{kBlocks});
  }
  set.remove({{0}, {kBlocks}});
  EXPECT_TRUE(set.empty());
}

TEST(BlockSet, HasNothingToSayOfNoBlocks) {
  BlockSet set;
  set.add({{7}, {0}});
  EXPECT_TRUE(set.empty());
  set.visit({{7}, {0}}, [](BlockRange, bool) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace mariner::volume
