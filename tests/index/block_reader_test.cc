#include "index/block_reader.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <vector>

#include "tests/index/tree_rig.h"

namespace mariner::test {
namespace {

using index::BlockReader;
using index::BTree;
using index::IndexKey;
using index::KeyRange;

// A tree of many leaves with nothing of it in memory, nor room for it.
class BlockReaderTest : public ::testing::Test {
 protected:
  static TreeRig::Options options() {
    TreeRig::Options options = TreeRig::small_options(1);
    options.store.cache_bytes = 0;
    return options;
  }
  void SetUp() override {
    for (std::uint64_t i = 0; i < 4'000; ++i) rig_.insert({i, 0}, i);
    ASSERT_TRUE(rig_.commit_all());
  }
  std::vector<KeyRange> every(std::uint64_t step) {
    std::vector<KeyRange> ranges;
    for (std::uint64_t i = 0; i < 4'000; i += step) ranges.push_back({{i, 0}, {i, 9}});
    return ranges;
  }

  TreeRig rig_{options()};
};

TEST_F(BlockReaderTest, WhatIsMissingIsReadAtOnceAndThenUsed) {
  std::size_t computed = 0;
  std::set<std::size_t> found;
  bool done = false;
  const std::uint64_t reads = rig_.store().statistics().query_reads;
  consult(
      rig_.store(),
      [&](BlockReader& reader) {
        ++computed;
        found.clear();
        rig_.tree().find_last_each(reader, every(400),
                                   [&](std::size_t i, IndexKey, BTree::Value) { found.insert(i); });
      },
      [&](const Result<void>& r) { done = r.has_value(); });
  EXPECT_FALSE(done);
  EXPECT_EQ(rig_.disk().in_flight(), 10u);
  rig_.executor().run_ready();
  EXPECT_TRUE(done);
  EXPECT_EQ(computed, 2u);
  EXPECT_EQ(found.size(), 10u);
  EXPECT_EQ(rig_.store().statistics().query_reads, reads + 10);
}

TEST_F(BlockReaderTest, WhatChangesMeanwhileIsSeen) {
  std::uint64_t newest = 0;
  bool done = false;
  consult(
      rig_.store(),
      [&](BlockReader& reader) {
        rig_.tree().find_last_each(
            reader, every(4'000),
            [&](std::size_t, IndexKey key, BTree::Value) { newest = key.low; });
      },
      [&](const Result<void>& r) { done = r.has_value(); });
  rig_.insert({0, 5}, 5);
  ASSERT_TRUE(rig_.commit_all());  // what is being read is another version now
  rig_.executor().run_ready();
  ASSERT_TRUE(done);
  EXPECT_EQ(newest, 5u);
}

// However often one computation looks at a leaf, and for whatever of it.
TEST_F(BlockReaderTest, WhatIsPendingIsSeenByEachLook) {
  for (std::uint64_t i = 0; i < 40; ++i) rig_.insert({i, 3}, 1'000 + i);
  rig_.erase({7, 0});
  std::size_t rounds = 0;
  const auto look = [&](bool later) {
    bool done = false;
    consult(
        rig_.store(),
        [&](BlockReader& reader) {
          ++rounds;
          for (std::uint64_t i = 40; i-- > 0;) {
            const KeyRange before[] = {{{i, 0}, {i, 2}}};
            const KeyRange all[] = {{{i, 0}, {i, 9}}};
            std::vector<std::uint64_t> found;
            for (const auto& ranges : {before, all}) {
              rig_.tree().find_last_each(
                  reader, std::span(ranges, 1),
                  [&](std::size_t, IndexKey key, BTree::Value) { found.push_back(key.low); });
            }
            if (!reader.complete()) continue;
            const std::uint64_t newest = later && i == 5 ? 4 : 3;
            if (i == 7) {
              EXPECT_EQ(found, (std::vector<std::uint64_t>{newest})) << "the first one is gone";
            } else {
              EXPECT_EQ(found, (std::vector<std::uint64_t>{0, newest})) << i;
            }
          }
        },
        [&](const Result<void>& r) { done = r.has_value(); });
    rig_.executor().run_ready();
    EXPECT_TRUE(done);
  };
  look(false);
  rig_.insert({5, 4}, 1);
  look(true);
  EXPECT_GE(rounds, 2u);
}

TEST_F(BlockReaderTest, AnErrorEndsIt) {
  rig_.disk().fail_reads({0, std::uint64_t{64} << 20});
  Result<void> result;
  std::size_t computed = 0;
  consult(
      rig_.store(),
      [&](BlockReader& reader) {
        ++computed;
        rig_.tree().find_last_each(reader, every(100), [](std::size_t, IndexKey, BTree::Value) {});
      },
      [&](Result<void> r) { result = std::move(r); });
  rig_.executor().run_ready();
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(computed, 1u);
}

}  // namespace
}  // namespace mariner::test
