#include "server/volume/split_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

namespace mariner::volume {
namespace {

using Kind = PendingContent::Kind;

PendingContent content(Kind kind, std::uint64_t at) {
  PendingContent made;
  made.kind = kind;
  made.at = {at};
  if (kind == Kind::kMemory) {
    made.repeated = true;
    made.payload = Payload::allocate(kBlockBytes);
  }
  return made;
}

// By block: `at` of what is pending there.
std::vector<std::uint64_t> said(const SplitTable& table, std::uint64_t blocks) {
  std::vector<std::uint64_t> all;
  table.visit({{0}, {blocks}}, [&](BlockRange part, const PendingContent* content) {
    EXPECT_EQ(part.first.value, all.size());
    all.resize(all.size() + part.count.value, content != nullptr ? content->at.value : 0);
  });
  return all;
}

TEST(SplitTable, TheNewestOfBothCounts) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    SplitTable table;
    std::vector<std::uint64_t> expected(64);
    for (std::uint64_t at = 1; at <= 40; ++at) {
      const BlockRange range{{random() % 48}, {1 + random() % 16}};
      const Kind kind = std::array{Kind::kMemory, Kind::kZero, Kind::kHistory}[random() % 3];
      if (kind == Kind::kHistory && random() % 2 == 0) {
        const std::array<BlockRange, 2> both{BlockRange{range.first, {1}},
                                             BlockRange{range.first + BlockCount{2}, {3}}};
        table.put_past(both, content(kind, at));
        for (const std::uint64_t block : {0, 2, 3, 4}) expected[range.first.value + block] = at;
      } else {
        table.put(range, content(kind, at));
        for (std::uint64_t i = 0; i < range.count.value; ++i) expected[range.first.value + i] = at;
      }
      ASSERT_EQ(said(table, 64), expected);
      ASSERT_EQ(table.past().history_bytes(), table.past().cost_bytes());
      ASSERT_EQ(table.memory()->history_bytes(), 0u);
    }
  }
}

TEST(SplitTable, SaysWhereThePastIs) {
  SplitTable table;
  EXPECT_FALSE(table.has_past({{0}, {100}}));
  table.put({{10}, {10}}, content(Kind::kHistory, 1));
  table.put({{12}, {2}}, content(Kind::kZero, 2));
  EXPECT_FALSE(table.has_past({{0}, {10}}));
  EXPECT_TRUE(table.has_past({{0}, {11}}));
  EXPECT_FALSE(table.has_past({{12}, {2}}));
  EXPECT_TRUE(table.has_past({{12}, {3}}));
  EXPECT_FALSE(table.has_past({{20}, {1}}));
}

TEST(SplitTable, ThePastGoesItsOwnWay) {
  SplitTable table;
  table.put({{0}, {4}}, content(Kind::kHistory, 1));
  table.put({{2}, {1}}, content(Kind::kMemory, 2));
  table.put({{8}, {1}}, content(Kind::kHistory, 3));
  table.forget_past_before(Lbn{3});
  EXPECT_EQ(said(table, 9), (std::vector<std::uint64_t>{0, 0, 2, 1, 0, 0, 0, 0, 3}));
  const auto past = table.take_past();
  EXPECT_EQ(past->cost_bytes(), 2 * kBlockBytes);
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(said(table, 9), (std::vector<std::uint64_t>{0, 0, 2, 0, 0, 0, 0, 0, 0}));
  table.memory()->erase_before(Lbn{9});
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace mariner::volume
