#include "ifsck/map_prefetch.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/block_map.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class MapPrefetchTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::vector<std::byte>> inodes() {
    std::vector<std::vector<std::byte>> all;
    for (const InodeNumber each : numbers_) all.push_back(made_.inode(each));
    return all;
  }

  MadeVolume made_{GetParam()};
  MadeMoment moment_{*made_.past};
  const std::vector<InodeNumber> numbers_{made_.find("a/large"), made_.find("a/b/sparse"),
                                          made_.find("many"), made_.find("short")};
};

TEST_P(MapPrefetchTest, NothingIsLeftToAskFor) {
  const MapPrefetch wish{&*moment_.context, inodes()};
  ASSERT_TRUE(prefetch_maps(std::span(&wish, 1)));
  const auto asked = moment_.view.counters().questions;
  std::size_t nodes = 0;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (!has_block_map(wish.inodes[i])) continue;
    const auto map =
        map_blocks(*moment_.volume, *moment_.layout, numbers_[i], wish.inodes[i]).value();
    nodes += map.nodes.size();
  }
  EXPECT_GT(nodes, 0u);
  EXPECT_EQ(moment_.view.counters().questions, asked);
}

TEST_P(MapPrefetchTest, AQuestionIsOfOneLevelOfAll) {
  const MapPrefetch wish{&*moment_.context, inodes()};
  const auto before = moment_.view.counters().questions;
  ASSERT_TRUE(prefetch_maps(std::span(&wish, 1)));
  EXPECT_LE(moment_.view.counters().questions - before, 3u);
}

// (Whatever stands there.)
TEST_P(MapPrefetchTest, WhatIsNoMapIsNoError) {
  for (unsigned seed = 1; seed < 50; ++seed) {
    auto all = inodes();
    for (auto& inode : all) {
      for (std::size_t i = 0; i < 60; ++i) inode[40 + i] = static_cast<std::byte>(i * seed);
    }
    all.emplace_back();
    const MapPrefetch wish{&*moment_.context, std::move(all)};
    ASSERT_TRUE(prefetch_maps(std::span(&wish, 1))) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MapPrefetchTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
