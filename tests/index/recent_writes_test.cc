#include "index/recent_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace mariner::index {
namespace {

BlockRange blocks(std::uint64_t lbn, std::uint64_t count = 1) {
  return {Lbn{lbn}, BlockCount{count}};
}
std::vector<BlockRange> left_of(const RecentWrites& recent, std::vector<BlockRange> ranges,
                                std::uint64_t after, std::uint64_t through) {
  return without_written(ranges, recent.within(SequenceNumber{after}, SequenceNumber{through}));
}

TEST(RecentWrites, OnlyWholePeriodsCount) {
  RecentWrites recent;
  constexpr std::uint64_t kOne = RecentWrites::kWritesMin;
  for (std::uint64_t i = 1; i <= 2 * kOne; ++i) {
    recent.add(blocks(i <= kOne ? 7 : 8), SequenceNumber{i});
  }
  const std::vector all{blocks(6, 4)};
  EXPECT_EQ(left_of(recent, all, 0, kOne), (std::vector{blocks(6), blocks(8, 2)}));
  EXPECT_EQ(left_of(recent, all, kOne, 2 * kOne), (std::vector{blocks(6, 2), blocks(9)}));
  EXPECT_EQ(left_of(recent, all, 0, 2 * kOne), (std::vector{blocks(6), blocks(9)}));
  EXPECT_EQ(left_of(recent, all, 1, 2 * kOne - 1), all) << "neither lies within that";
  recent.forget_through(SequenceNumber{1});
  EXPECT_EQ(left_of(recent, all, 0, 2 * kOne), (std::vector{blocks(6, 2), blocks(9)}));
}

TEST(RecentWrites, WhatIsLongOrSpreadThinlyIsNotRemembered) {
  RecentWrites recent;
  const std::uint64_t writes = RecentWrites::kWritesMin * 4;
  recent.add(blocks(0, RecentWrites::kBlocksMax + 1), SequenceNumber{1});
  for (std::uint64_t i = 2; i <= writes; ++i) recent.add(blocks(5), SequenceNumber{i});
  EXPECT_EQ(left_of(recent, {blocks(3, 4)}, 0, writes), (std::vector{blocks(3, 2), blocks(6)}));
  // Many that are each in a place of its own: nothing is known of them, and memory is bounded.
  RecentWrites thin;
  for (std::uint64_t i = 1; i <= 400'000; ++i) thin.add(blocks(i << 20), SequenceNumber{i});
  std::size_t chunks = 0;
  for (const auto& period : thin.within(SequenceNumber{0}, SequenceNumber{400'000})) {
    chunks += period->chunks();
  }
  EXPECT_LE(chunks, RecentWrites::kPeriodsMax * RecentWrites::kChunksMax);
}

TEST(RecentWrites, ReachesFarBackInFewPeriods) {
  RecentWrites recent;
  constexpr std::uint64_t kWrites = 3'000'000;
  for (std::uint64_t i = 1; i <= kWrites; ++i) recent.add(blocks(i % 5000), SequenceNumber{i});
  const auto periods = recent.within(SequenceNumber{0}, SequenceNumber{kWrites});
  ASSERT_LE(periods.size(), RecentWrites::kPeriodsMax);
  EXPECT_EQ(periods.front()->first, SequenceNumber{1});
  for (const auto& period : periods) EXPECT_LE(period->writes, kWrites / 2);
}

// Against what was written, number by number.
TEST(RecentWrites, NeverSaysWhatIsNotSo) {
  std::mt19937_64 random(1);
  RecentWrites recent;
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;  // of each block, ascending
  std::uint64_t given_up = 0;
  std::size_t left_out = 0;
  for (std::uint64_t i = 1; i <= 40'000; ++i) {
    const BlockRange range = blocks(random() % 600, 1 + random() % 8);
    recent.add(range, SequenceNumber{i});
    for (std::uint64_t each = 0; each < range.count.value; ++each) {
      numbers[range.first.value + each].push_back(i);
    }
    if (i % 1000 != 0) continue;
    const std::uint64_t after = given_up + random() % (i - given_up);
    const std::uint64_t through = after + random() % (i - after + 1);
    const std::vector<BlockRange> all{blocks(0, 100), blocks(150, 500)};
    std::vector<bool> left(700);
    for (const BlockRange& range_left : left_of(recent, all, after, through)) {
      for (std::uint64_t b = range_left.first.value; b < range_left.end().value; ++b)
        left[b] = true;
    }
    for (const BlockRange& each : all) {
      for (std::uint64_t b = each.first.value; b < each.end().value; ++b) {
        if (left[b]) continue;
        ++left_out;
        const auto& of = numbers[b];
        const auto next = std::ranges::upper_bound(of, after);
        ASSERT_TRUE(next != of.end() && *next <= through)
            << "block " << b << " was not written in (" << after << ", " << through << "]";
      }
    }
    if (i % 7000 == 0) recent.forget_through(SequenceNumber{given_up = i / 2});
  }
  EXPECT_GT(left_out, 1000u);
}

}  // namespace
}  // namespace mariner::index
