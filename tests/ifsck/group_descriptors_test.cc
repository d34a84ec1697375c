#include "ifsck/group_descriptors.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace mariner::ifsck {
namespace {

std::set<dgrp_t> others(std::span<const std::byte> one, std::span<const std::byte> other,
                        std::size_t each_bytes) {
  std::set<dgrp_t> groups;
  for_each_other_descriptor(one, other, each_bytes, [&](dgrp_t group) { groups.insert(group); });
  return groups;
}

TEST(GroupDescriptorsTest, OthersAreFoundWhereverTheyAre) {
  std::mt19937_64 random(1);
  for (const std::size_t each : {32, 64, 128}) {
    for (const dgrp_t count : {1, 2, 63, 64, 65, 128, 800, 801}) {
      const std::vector<std::byte> one(count * each, std::byte{7});
      EXPECT_EQ(others(one, one, each), std::set<dgrp_t>{});
      for (int round = 0; round < 20; ++round) {
        std::set<dgrp_t> changed{round == 0 ? 0 : count - 1};
        for (int i = 0; i < round; ++i) changed.insert(static_cast<dgrp_t>(random() % count));
        auto other = one;
        for (const dgrp_t group : changed) other[group * each + random() % each] = std::byte{8};
        EXPECT_EQ(others(one, other, each), changed) << count << " of " << each << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace mariner::ifsck
