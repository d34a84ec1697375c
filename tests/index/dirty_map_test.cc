#include "index/dirty_map.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace mariner::index {
namespace {

TEST(DirtyMap, AnEmptyOneHasNothing) {
  DirtyMap map;
  EXPECT_EQ(map.count(), 0u);
  EXPECT_FALSE(map.contains(0));
  EXPECT_FALSE(map.next(0).has_value());
  map.erase(1'000'000);
  EXPECT_EQ(map.count(), 0u);
}

TEST(DirtyMap, NextIsAtOrAboveAlsoAcrossWords) {
  DirtyMap map;
  map.insert(63);
  map.insert(64);
  map.insert(1'000);
  EXPECT_EQ(map.next(0), 63u);
  EXPECT_EQ(map.next(63), 63u);
  EXPECT_EQ(map.next(64), 64u);
  EXPECT_EQ(map.next(65), 1'000u);
  EXPECT_FALSE(map.next(1'001).has_value());
}

TEST(DirtyMap, AgreesWithASet) {
  std::mt19937_64 random(1);
  DirtyMap map;
  std::set<std::uint32_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::uint32_t>(random() % 300);
    if (random() % 2 == 0) {
      map.insert(number);
      model.insert(number);
    } else {
      map.erase(number);
      model.erase(number);
    }
    ASSERT_EQ(map.count(), model.size());
    const auto from = static_cast<std::uint32_t>(random() % 400);
    ASSERT_EQ(map.contains(from), model.contains(from));
    const auto expected = model.lower_bound(from);
    const std::optional<std::uint32_t> found = map.next(from);
    ASSERT_EQ(found.has_value(), expected != model.end());
    if (found) {
      ASSERT_EQ(*found, *expected);
    }
  }
}

}  // namespace
}  // namespace mariner::index
