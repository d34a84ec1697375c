#include "replication/number_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace mariner::replication {
namespace {

using List = std::vector<SequenceRange>;

TEST(NumberRanges, NeighboursBecomeOne) {
  NumberRanges ranges;
  EXPECT_TRUE(ranges.empty());
  ranges.add({{5}, {6}});
  ranges.add({{9}, {9}});
  EXPECT_EQ(ranges.list(), (List{{{5}, {6}}, {{9}, {9}}}));
  ranges.add({{7}, {8}});
  EXPECT_EQ(ranges.list(), (List{{{5}, {9}}}));
  ranges.add({{4}, {4}});
  ranges.add({{10}, {12}});
  EXPECT_EQ(ranges.list(), (List{{{4}, {12}}}));
}

TEST(NumberRanges, APartIsTakenOut) {
  NumberRanges ranges;
  ranges.add({{1}, {10}});
  ranges.remove({{4}, {5}});
  EXPECT_EQ(ranges.list(), (List{{{1}, {3}}, {{6}, {10}}}));
  ranges.remove({{1}, {3}});
  ranges.remove({{10}, {10}});
  EXPECT_EQ(ranges.list(), (List{{{6}, {9}}}));
  EXPECT_FALSE(ranges.take({7}).has_value()) << "a range begins before it";
  EXPECT_EQ(ranges.take({6}), SequenceNumber{9});
  EXPECT_TRUE(ranges.empty());
}

TEST(NumberRanges, IsTheSetThatItSeemsToBe) {
  std::mt19937 random(7);
  NumberRanges ranges;
  std::set<std::uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t first = 1 + random() % 60;
    const std::uint64_t last = first + random() % 6;
    std::size_t have = 0;
    for (std::uint64_t n = first; n <= last; ++n) have += model.contains(n);
    const SequenceRange range{{first}, {last}};
    ASSERT_EQ(ranges.contains(range), have == last - first + 1);
    ASSERT_EQ(ranges.intersects(range), have > 0);
    if (have == 0) {
      ranges.add(range);
      for (std::uint64_t n = first; n <= last; ++n) model.insert(n);
    } else if (have == last - first + 1) {
      ranges.remove(range);
      for (std::uint64_t n = first; n <= last; ++n) model.erase(n);
    }
    SequenceNumber before{0};
    std::size_t count = 0;
    for (const SequenceRange& each : ranges.list()) {
      ASSERT_TRUE(count == 0 || each.first > before.next());
      before = each.last;
      count += each.last.value - each.first.value + 1;
    }
    ASSERT_EQ(count, model.size());
  }
}

TEST(NumberRangesDeath, TwiceOrNotThereIsABug) {
  NumberRanges ranges;
  ranges.add({{5}, {7}});
  EXPECT_DEATH(ranges.add({{7}, {9}}), "CHECK failed");
  EXPECT_DEATH(ranges.remove({{7}, {8}}), "CHECK failed");
}

}  // namespace
}  // namespace mariner::replication
