#include "index/kept_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "index/version_index.h"
#include "tests/logging/log_testing.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using index::BlockReader;
using index::Bosc;
using index::BTree;
using index::KeptIndex;
using index::KeptRun;
using index::PlacedRun;

BlockRange blocks(std::uint64_t first, std::uint64_t count) {
  return {Lbn{first}, BlockCount{count}};
}

KeptRun kept(BlockRange range, std::uint64_t from, std::uint64_t through, std::uint64_t ordinal,
             bool zeros = false) {
  KeptRun run{range, {from}, {through}, ordinal, {}};
  if (!zeros) run.place = {PlacedRun::Kind::kLog, {ordinal * 16, 7, 3, 2, 1}, 0};
  return run;
}

class KeptIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    index::IndexShape shape;
    shape.block_bytes = 4096;
    shape.group_blocks = 8;
    ASSERT_TRUE(index::format_index_file(disk_, shape));
    open();
  }
  void TearDown() override { close(); }

  void open() {
    index::BoscOptions options;
    options.memory_bytes = std::size_t{1} << 20;
    options.cache_bytes = std::size_t{64} << 10;
    options.run_blocks_max = 8;
    store_ = *Bosc::open(executor_, disk_, options);
    tree_ = *BTree::open(*store_, KeptIndex::tree_options({4}, nullptr));
    index_ = std::make_unique<KeptIndex>(*tree_);
    consult([&](BlockReader& reader) { index_->learn(reader); });
  }
  void close() {
    store_->drain(nullptr);
    executor_.run_until_idle();
    index_.reset();
    store_.reset();
    tree_.reset();
  }
  void commit() {
    bool done = false;
    store_->commit_all([&](const Result<void>& r) { done = r.has_value(); });
    executor_.run_until_idle();
    ASSERT_TRUE(done);
  }
  void consult(UniqueFunction<void(BlockReader&)> compute) {
    bool done = false;
    index::consult(*store_, std::move(compute), [&](const Result<void>& r) {
      ASSERT_TRUE(r);
      done = true;
    });
    executor_.run_ready();
    ASSERT_TRUE(done);
  }
  std::vector<KeptRun> all(const std::vector<BlockRange>& ranges, std::uint64_t after = 0) {
    std::vector<KeptRun> out;
    consult([&](BlockReader& reader) { out = index_->all(reader, ranges, after); });
    return out;
  }
  std::vector<BlockRange> shown_at(std::vector<SequenceNumber> moments, std::uint64_t after = 0) {
    std::optional<std::vector<BlockRange>> out;
    index_->shown_at(std::move(moments), after, [&](Result<std::vector<BlockRange>> shown) {
      EXPECT_TRUE(shown);
      out = *std::move(shown);
    });
    executor_.run_ready();
    EXPECT_TRUE(out);
    return std::move(out).value_or(std::vector<BlockRange>{});
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = std::uint64_t{16} << 20}};
  std::unique_ptr<Bosc> store_;
  std::unique_ptr<BTree> tree_;
  std::unique_ptr<KeptIndex> index_;
};

TEST_F(KeptIndexTest, EntriesComeBackWithTheMomentsThatShowThem) {
  EXPECT_TRUE(index_->empty());
  index_->insert(kept(blocks(3, 1), 10, 30, 5));
  index_->insert(kept(blocks(3, 1), 40, 40, 6, true));
  for (const bool committed : {false, true}) {
    SCOPED_TRACE(committed);
    EXPECT_EQ(all({blocks(0, 8)}),
              (std::vector{kept(blocks(3, 1), 10, 30, 5), kept(blocks(3, 1), 40, 40, 6, true)}));
    EXPECT_EQ(all({blocks(0, 8)}, 5), (std::vector{kept(blocks(3, 1), 40, 40, 6, true)}));
    EXPECT_TRUE(all({blocks(0, 3), blocks(4, 100)}).empty());
    commit();
  }
}

TEST_F(KeptIndexTest, AnEntryIsFoundInPartsAlsoAfterARestart) {
  index_->insert(kept(blocks(1, 5000), 7, 9, 2));
  commit();
  close();
  open();
  std::uint64_t found = 0;
  for (const KeptRun& run : all({blocks(2, 3), blocks(4000, 900), blocks(6000, 1)})) {
    EXPECT_EQ(run.place.payload_block, run.range.first.value - 1) << "of the part's first block";
    EXPECT_EQ(run.through, SequenceNumber{9});
    found += run.range.count.value;
  }
  EXPECT_EQ(found, 903U);
}

TEST_F(KeptIndexTest, WhatAMomentShows) {
  index_->insert(kept(blocks(0, 10), 1, 3, 1));
  index_->insert(kept(blocks(20, 10), 3, 5, 2));
  index_->insert(kept(blocks(30, 1), 8, 8, 3, true));
  EXPECT_EQ(shown_at({{2}}), (std::vector{blocks(0, 10)}));
  EXPECT_EQ(shown_at({{3}}), (std::vector{blocks(0, 10), blocks(20, 10)}));
  EXPECT_EQ(shown_at({{2}, {8}}), (std::vector{blocks(0, 10), blocks(30, 1)}));
  EXPECT_EQ(shown_at({{3}}, 1), (std::vector{blocks(20, 10)}));
  EXPECT_TRUE(shown_at({{6}}).empty());
}

TEST_F(KeptIndexTest, WhatAMomentShowsIsReadInSeveralTurnsAndMayMoveMeanwhile) {
  constexpr std::uint64_t kRuns = 5'000;
  for (std::uint64_t i = 0; i < kRuns; ++i) index_->insert(kept(blocks(4 + i * 2, 1), 1, 3, i + 1));
  commit();
  close();
  open();
  std::optional<std::vector<BlockRange>> out;
  index_->shown_at({{2}}, 0, [&](Result<std::vector<BlockRange>> shown) {
    ASSERT_TRUE(shown);
    out = *std::move(shown);
  });
  std::size_t turns = 0;
  for (; !out; ++turns) {
    ASSERT_GT(executor_.turn(), 0u);
    if (turns == 4) index_->insert(kept(blocks(1, 1), 2, 2, kRuns + 1));
  }
  EXPECT_GT(turns, 5u);
  EXPECT_EQ(out->size(), kRuns + 1);
  EXPECT_EQ(out->front(), blocks(1, 1)) << "in front of what was read by then";
}

TEST_F(KeptIndexTest, ALeafIsMadeAgainFromWhatHasKeysInIt) {
  const KeptRun run = kept(blocks(0, 9), 1, 3, 1);
  std::vector<index::IndexKey> keys;
  KeptIndex::for_each_key(run, [&](index::IndexKey key) { keys.push_back(key); });
  EXPECT_EQ(keys.size(), 2U) << "eight blocks and one";
  index_->insert(run);
  commit();
  const std::vector<KeptRun> before = all({blocks(0, 16)});
  std::optional<index::KeyRange> leaf;
  for (std::uint32_t at = 0; at < store_->allocated_blocks() + 2 && !leaf; ++at) {
    const index::BlockAddress address{at};
    if (store_->is_allocated(address) && !store_->is_committing(address)) {
      leaf = tree_->begin_rebuild(address);
    }
  }
  ASSERT_TRUE(leaf);
  for (const index::IndexKey& key : keys) EXPECT_TRUE(leaf->contains(key));
  index_->restore(run, *leaf);
  tree_->end_rebuild(*leaf);
  EXPECT_EQ(all({blocks(0, 16)}), before);
}

}  // namespace
}  // namespace mariner::test
