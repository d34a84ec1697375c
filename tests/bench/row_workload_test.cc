#include "tests/bench/row_workload.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace mariner::bench {
namespace {

using Kind = RowWorkload::Kind;
using Pattern = RowWorkload::Pattern;

constexpr std::uint64_t kRows = 1'000;
constexpr std::uint64_t kEnd = kRows * RowWorkload::kKeyStep;

TEST(RowWorkloadTest, TheIndexBeginsWithRowsThatAreAStepApart) {
  std::vector<index::IndexKey> keys;
  RowWorkload({.rows = kRows}).initial_rows([&](index::IndexKey key) { keys.push_back(key); });
  ASSERT_EQ(keys.size(), kRows);
  EXPECT_EQ(keys.front(), (index::IndexKey{0, 0}));
  EXPECT_EQ(keys.back(), (index::IndexKey{kEnd - RowWorkload::kKeyStep, 0}));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
}

TEST(RowWorkloadTest, InsertsFallBetweenRowsAndUpdatesOnThem) {
  RowWorkload inserts({.pattern = Pattern::kInsert, .rows = kRows});
  RowWorkload updates({.pattern = Pattern::kUpdate, .rows = kRows});
  std::set<std::uint64_t> updated;
  std::uint64_t new_keys = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto insert = inserts.next();
    EXPECT_EQ(insert.kind, Kind::kInsert);
    EXPECT_LT(insert.key.high, kEnd);
    new_keys += insert.key.high % RowWorkload::kKeyStep == 0 ? 0 : 1;
    const auto update = updates.next();
    EXPECT_EQ(update.kind, Kind::kUpdate);
    EXPECT_EQ(update.key.high % RowWorkload::kKeyStep, 0u);
    EXPECT_LT(update.key.high, kEnd);
    updated.insert(update.key.high);
  }
  EXPECT_GT(new_keys, 9'900u);
  EXPECT_GT(updated.size(), kRows * 99 / 100);
}

TEST(RowWorkloadTest, ClustersAndSequencesAreConsecutive) {
  RowWorkload clustered({.pattern = Pattern::kClustered, .rows = kRows});
  std::set<std::uint64_t> starts;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t first = clustered.next().key.high;
    starts.insert(first);
    for (std::uint64_t row = 1; row < RowWorkload::kClusterRows; ++row) {
      EXPECT_EQ(clustered.next().key.high, first + row);
    }
  }
  EXPECT_GT(starts.size(), 95u);
  RowWorkload sequential({.pattern = Pattern::kSequential, .rows = kRows});
  for (std::uint64_t key = 0; key < 5'000; ++key) EXPECT_EQ(sequential.next().key.high, key);
}

TEST(RowWorkloadTest, TheTraceComesWithAndWithoutItsReads) {
  RowWorkload updates({.pattern = Pattern::kTpcc, .warehouses = 2});
  RowWorkload all({.pattern = Pattern::kTpccReads, .warehouses = 2});
  TpccTrace trace({.warehouses = 2});
  for (int i = 0; i < 20'000; ++i) {
    const auto expected = trace.next();
    EXPECT_EQ(all.next(), expected);
    if (expected.kind != Kind::kRead) {
      EXPECT_EQ(updates.next(), expected);
    }
  }
  std::uint64_t rows = 0;
  updates.initial_rows([&](index::IndexKey) { ++rows; });
  EXPECT_GT(rows, 2 * 400'000u);
}

TEST(RowWorkloadTest, PatternsHaveNames) {
  EXPECT_EQ(RowWorkload::pattern_of("tpcc-reads"), Pattern::kTpccReads);
  EXPECT_EQ(RowWorkload::pattern_of("insert"), Pattern::kInsert);
  EXPECT_FALSE(RowWorkload::pattern_of("nothing"));
}

}  // namespace
}  // namespace mariner::bench
