#include "index/leaf_map.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace mariner::index {
namespace {

TEST(LeafMap, AgreesWithAMap) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    LeafMap map;
    std::map<IndexKey, LeafNumber> model{{{}, 0}};
    map.insert({}, 0);
    const std::uint64_t keys = 1 + random() % 4'000;
    for (LeafNumber i = 1; i < 6'000; ++i) {
      const IndexKey key{random() % keys, random() % 2};
      if ((i / 1'500) % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0) {
        if (model.emplace(key, i).second) map.insert(key, i);
      } else if (const auto victim = model.lower_bound(key);
                 victim != model.end() && victim != model.begin()) {
        map.erase(IndexKey(victim->first));
        model.erase(victim);
      }
      const IndexKey at{random() % keys, random() % 3};
      const auto above = model.upper_bound(at);
      ASSERT_EQ(map.find(at), std::prev(above)->second);
      const std::optional<IndexKey> next = map.next_low(at);
      ASSERT_EQ(next.has_value(), above != model.end());
      if (next) {
        ASSERT_EQ(*next, above->first);
      }
      ASSERT_EQ(map.size(), model.size());
    }
    auto expected = model.begin();
    map.for_each([&](IndexKey low, LeafNumber leaf) {
      ASSERT_NE(expected, model.end());
      EXPECT_EQ(low, expected->first);
      EXPECT_EQ(leaf, (expected++)->second);
    });
    EXPECT_EQ(expected, model.end());
  }
}

TEST(LeafMap, AscendingInsertsFillTheirNodes) {
  constexpr std::size_t kLeaves = 100 * LeafMap::kNodeLeaves;
  LeafMap map;
  for (std::uint64_t i = 0; i < kLeaves; ++i) map.insert({i, 0}, 0);
  EXPECT_EQ(map.size(), kLeaves);
  const std::size_t bytes_each = sizeof(IndexKey) + sizeof(LeafNumber);
  EXPECT_LE(map.memory_bytes(), kLeaves * bytes_each * 11 / 10) << "no room for others";
}

TEST(LeafMap, AnErasedLeafsRangeGoesToTheOneBefore) {
  LeafMap map;
  map.insert({}, 1);
  map.insert({10, 0}, 2);
  map.insert({20, 0}, 3);
  map.erase({10, 0});
  EXPECT_EQ(map.find({15, 0}), 1u);
  EXPECT_EQ(map.next_low({15, 0}), (IndexKey{20, 0}));
  EXPECT_EQ(map.find(IndexKey::max()), 3u);
}

TEST(LeafMap, TheFirstOnesCanGoAndTheLastBeforeSomethingIsFound) {
  LeafMap map;
  constexpr std::uint64_t kLeaves = 3 * LeafMap::kNodeLeaves;
  for (LeafNumber i = 0; i < kLeaves; ++i) map.insert({i, 0}, i);
  for (std::uint64_t high = 0; high < kLeaves; high += 7) {
    EXPECT_EQ(map.last_low([&](IndexKey low) { return low.high <= high; }), (IndexKey{high, 0}));
  }
  for (LeafNumber i = 1; i < kLeaves; ++i) {
    map.erase_first();
    ASSERT_EQ(map.find({}), i);
    ASSERT_EQ(map.size(), kLeaves - i);
    const std::optional<IndexKey> next = map.next_low({});
    ASSERT_EQ(next.has_value(), i + 1 < kLeaves);
    if (next) {
      ASSERT_EQ(*next, (IndexKey{i + std::uint64_t{1}, 0}));
    }
  }
}

TEST(LeafMap, TheFirstBeginsWithTheSmallestKeyAndStays) {
  LeafMap map;
  EXPECT_DEATH(map.insert({1, 0}, 1), "");
  map.insert({}, 1);
  EXPECT_DEATH(map.erase({}), "");
  EXPECT_DEATH(map.insert({}, 2), "");
}

}  // namespace
}  // namespace mariner::index
