#include "server/volume/pending_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

namespace mariner::volume {
namespace {

// What the table says of one block, as numbers: which put, and which of its blocks.
struct Said {
  std::uint64_t put = 0;
  std::uint64_t block = 0;
  friend bool operator==(const Said&, const Said&) = default;
};

PendingContent memory(std::uint64_t put, BlockCount blocks, bool repeated = false) {
  PendingContent content;
  content.kind = PendingContent::Kind::kMemory;
  content.repeated = repeated;
  content.at = SequenceNumber{put};
  content.payload = Payload::allocate(repeated ? kBlockBytes : blocks.bytes());
  return content;
}

std::vector<std::optional<Said>> all_of(const PendingTable& table, BlockRange range) {
  std::vector<std::optional<Said>> out;
  Lbn at = range.first;
  table.visit(range, [&](BlockRange part, const PendingContent* content) {
    EXPECT_EQ(part.first, at);
    EXPECT_FALSE(part.empty());
    at = part.end();
    for (std::uint64_t i = 0; i < part.count.value; ++i) {
      if (content == nullptr) {
        out.emplace_back();
      } else {
        const bool steps = content->kind == PendingContent::Kind::kMemory && !content->repeated;
        out.push_back(Said{content->at.value, content->offset / kBlockBytes + (steps ? i : 0)});
      }
    }
  });
  EXPECT_EQ(at, range.end());
  return out;
}

TEST(PendingTable, EmptyHasNothing) {
  const PendingTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.next_run(Lbn{0}).range.empty());
  EXPECT_EQ(all_of(table, {{3}, {2}}), (std::vector<std::optional<Said>>{{}, {}}));
}

TEST(PendingTable, ANewerWriteSplitsWhatItCovers) {
  PendingTable table;
  table.put({{10}, {10}}, memory(1, {10}));
  table.put({{13}, {2}}, memory(2, {2}));
  EXPECT_EQ(table.size(), 3u);
  const auto run = table.next_run(Lbn{15});
  EXPECT_EQ(run.range, (BlockRange{{15}, {5}}));
  EXPECT_EQ(run.content.offset, 5u * kBlockBytes);
  EXPECT_EQ(table.next_run(Lbn{0}).range, (BlockRange{{10}, {3}}));
}

TEST(PendingTable, ARepeatedBlockStaysItselfWhenSplit) {
  PendingTable table;
  table.put({{0}, {100}}, memory(1, {100}, true));
  table.put({{50}, {1}}, memory(2, {1}));
  const auto run = table.next_run(Lbn{60});
  EXPECT_EQ(run.range, (BlockRange{{60}, {40}}));
  EXPECT_EQ(run.content.offset, 0u);
}

TEST(PendingTable, ForgetsWhatLiesBelow) {
  PendingTable table;
  table.put({{10}, {10}}, memory(1, {10}));
  table.put({{30}, {10}}, memory(2, {10}));
  EXPECT_EQ(table.erase_before(Lbn{35}), (std::vector<BlockRange>{{{10}, {10}}, {{30}, {5}}}));
  EXPECT_EQ(table.next_run(Lbn{0}).range, (BlockRange{{35}, {5}}));
  EXPECT_EQ(table.next_run(Lbn{0}).content.offset, 5u * kBlockBytes);
  table.erase_before(Lbn{UINT64_MAX});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.cost_bytes(), 0u);
}

TEST(PendingTable, ForgetsSomeOfWhatLiesBelow) {
  PendingTable table;
  for (std::uint64_t block = 0; block < 50; block += 10) table.put({{block}, {5}}, {});
  const auto forgotten = [&] { return table.erase_before(Lbn{42}, 2); };
  EXPECT_EQ(forgotten(), (std::vector<BlockRange>{{{0}, {5}}, {{10}, {5}}}));
  EXPECT_EQ(forgotten(), (std::vector<BlockRange>{{{20}, {5}}, {{30}, {5}}}));
  EXPECT_EQ(forgotten(), (std::vector<BlockRange>{{{40}, {2}}}));
  EXPECT_EQ(forgotten(), (std::vector<BlockRange>{}));
  EXPECT_EQ(table.next_run(Lbn{0}).range, (BlockRange{{42}, {3}}));
}

TEST(PendingTable, APayloadCountsUntilAllOfItIsReplaced) {
  PendingTable table;
  table.put({{0}, {4}}, memory(1, {4}));
  table.put({{8}, {4}}, memory(2, {4}));
  EXPECT_EQ(table.memory_bytes(), 8u * kBlockBytes);
  table.put({{0}, {4}}, memory(3, {4}));
  EXPECT_EQ(table.memory_bytes(), 8u * kBlockBytes) << "overwritten at once";
  table.put({{9}, {1}}, {});
  EXPECT_EQ(table.memory_bytes(), 8u * kBlockBytes) << "the rest keeps all of it";
  EXPECT_EQ(table.cost_bytes(), 8u * kBlockBytes);
  table.put({{0}, {6}}, {});
  EXPECT_EQ(table.memory_bytes(), 4u * kBlockBytes);
  EXPECT_EQ(table.cost_bytes(), 5u * kBlockBytes) << "zeros cost one block";
}

// Never less than what is really held.
TEST(PendingTable, CountsTheMemoryOfItsPayloads) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint64_t before = Payload::total_bytes();
    PendingTable table;
    for (std::uint64_t put = 1; put <= 40; ++put) {
      const BlockRange range{{random() % 32}, {std::uint64_t{1} << random() % 4}};
      switch (random() % 6) {
        case 0: table.put(range, {}); break;
        case 1: table.erase_before(range.first); break;
        default: table.put(range, memory(put, range.count, random() % 3 == 0)); break;
      }
      std::uint64_t cost = 0;
      for (PendingTable::Run run = table.next_run(Lbn{0}); !run.range.empty();
           run = table.next_run(run.range.end())) {
        cost +=
            run.content.kind == PendingContent::Kind::kZero ? kBlockBytes : run.range.count.bytes();
      }
      ASSERT_EQ(table.cost_bytes(), cost);
      ASSERT_GE(table.memory_bytes(), Payload::total_bytes() - before);
    }
  }
}

// As many at a time as there are, among others or not.
TEST(PendingTable, ManyPutTogetherEqualThoseThatArePutOneByOne) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    PendingTable together;
    PendingTable single;
    for (std::uint64_t put = 1; put <= random() % 4; ++put) {
      const BlockRange range{{random() % 60}, {1 + random() % 8}};
      together.put(range, memory(put, range.count));
      single.put(range, memory(put, range.count));
    }
    std::vector<BlockRange> ranges;
    for (std::uint64_t at = random() % 10; at < 60; at += 1 + random() % 12) {
      ranges.push_back({{at}, {1 + random() % 5}});
      at += ranges.back().count.value;
    }
    PendingContent past;
    past.kind = PendingContent::Kind::kHistory;
    past.at = {100};
    together.put_each(ranges, past);
    for (const BlockRange& range : ranges) single.put(range, past);
    ASSERT_EQ(all_of(together, {{0}, {80}}), all_of(single, {{0}, {80}})) << round;
    ASSERT_EQ(together.cost_bytes(), single.cost_bytes());
    ASSERT_EQ(together.history_bytes(), single.history_bytes());
    ASSERT_EQ(together.memory_bytes(), single.memory_bytes());
    together.erase_each(ranges);
    for (const BlockRange& range : ranges) single.erase(range);
    ASSERT_EQ(all_of(together, {{0}, {80}}), all_of(single, {{0}, {80}})) << round;
  }
}

TEST(PendingTable, EqualsANaiveTable) {
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint64_t blocks = 1 + random() % 60;
    PendingTable table;
    std::vector<std::optional<Said>> naive(blocks);
    for (std::uint64_t put = 1; put <= 30; ++put) {
      const std::uint64_t first = random() % blocks;
      const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(blocks - first, 12);
      PendingContent content;
      const bool repeated = random() % 3 == 0;
      if (random() % 2 == 0) {
        content = memory(put, {count}, repeated);
      } else {
        content.kind =
            random() % 2 == 0 ? PendingContent::Kind::kZero : PendingContent::Kind::kHistory;
        content.at = SequenceNumber{put};
      }
      const bool steps = content.kind == PendingContent::Kind::kMemory && !repeated;
      for (std::uint64_t i = 0; i < count; ++i) naive[first + i] = Said{put, steps ? i : 0};
      table.put({{first}, {count}}, std::move(content));
      ASSERT_EQ(all_of(table, {{0}, {blocks}}), naive);
    }
    // next_run walks the same in address order.
    std::vector<std::optional<Said>> walked(blocks);
    for (Lbn at{0};;) {
      const PendingTable::Run run = table.next_run(at);
      if (run.range.empty()) break;
      ASSERT_GE(run.range.first, at);
      const auto part = all_of(table, run.range);
      std::copy(part.begin(), part.end(),
                walked.begin() + static_cast<std::ptrdiff_t>(run.range.first.value));
      at = run.range.end();
    }
    ASSERT_EQ(walked, naive);
  }
}

}  // namespace
}  // namespace mariner::volume
