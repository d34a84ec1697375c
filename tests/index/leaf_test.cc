#include "index/leaf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "proto/bytes.h"
#include "tests/logging/log_testing.h"

namespace mariner::index {
namespace {

using Model = std::map<IndexKey, std::uint64_t>;
using Bytes = std::vector<std::byte>;

constexpr LeafShape kShape{500, 8};  // 19 records of 24 bytes, and 12 bytes of nothing

class Filter final : public RecordFilter {
 public:
  [[nodiscard]] bool is_expired(IndexKey key, std::span<const std::byte>) const override {
    return key.high % 3 == 0;
  }
};

class LeafTest : public ::testing::Test {
 protected:
  ~LeafTest() override { pool_.clear(queue_); }

  static Bytes modification(IndexKey key, std::uint64_t value) {
    Bytes bytes(kKeyBytes + 8);
    store_key(bytes.data(), key);
    store_le(bytes.data() + kKeyBytes, value);
    return bytes;
  }
  static Bytes modification(IndexKey key) {
    Bytes bytes(kKeyBytes);
    store_key(bytes.data(), key);
    return bytes;
  }
  void insert(IndexKey key, std::uint64_t value) {
    pool_.append(queue_, modification(key, value));
    model_[key] = value;
  }
  void erase(IndexKey key) {
    pool_.append(queue_, modification(key));
    model_.erase(key);
  }
  // Commits what is queued; the contents of every block of the result.
  std::vector<Bytes> commit(const Bytes& before, const RecordFilter* filter = nullptr) {
    Bytes after(kShape.contents_bytes, std::byte{0xee});
    BlockCommit commit({{}, before, after, PendingModifications(pool_, &queue_), &buffers_});
    commit_leaf(commit, kShape, filter);
    std::vector<Bytes> result;
    for (std::size_t i = 0; i < commit.result_blocks(); ++i) {
      result.emplace_back(commit.result(i).begin(), commit.result(i).end());
    }
    pool_.clear(queue_);
    return result;
  }
  static std::vector<std::pair<IndexKey, std::uint64_t>> records(const Bytes& contents) {
    const Leaf leaf(contents, kShape);
    std::vector<std::pair<IndexKey, std::uint64_t>> all;
    for (std::uint32_t i = 0; i < leaf.count(); ++i) {
      all.emplace_back(leaf.key(i), load_le<std::uint64_t>(leaf.value(i).data()));
    }
    return all;
  }
  static std::vector<std::uint32_t> counts(const std::vector<Bytes>& blocks) {
    std::vector<std::uint32_t> all;
    for (const Bytes& block : blocks) all.push_back(Leaf(block, kShape).count());
    return all;
  }
  // A leaf of keys (step, 0), (2 x step, 0), ... with their numbers as values.
  Bytes leaf_of(std::uint32_t count, std::uint64_t step = 1) {
    for (std::uint64_t i = 1; i <= count; ++i) insert({i * step, 0}, i);
    return commit({}).at(0);
  }

  ModificationPool pool_{{.chunk_bytes = 128}};
  index::BlockBuffers buffers_{kShape.contents_bytes + kIndexBlockHeaderBytes};
  ModificationQueue queue_;
  Model model_;
};

// FORMAT.md section 5.
TEST_F(LeafTest, GoldenBytes) {
  constexpr LeafShape kSmall{110, 8};
  pool_.append(queue_, modification({0x3132333435363738, 0x4142434445464748}, 0x5152535455565758));
  pool_.append(queue_, modification({1, 2}, 3));
  Bytes after(kSmall.contents_bytes, std::byte{0xee});
  BlockCommit commit({{}, {}, after, PendingModifications(pool_, &queue_), &buffers_});
  commit_leaf(commit, kSmall, nullptr);
  EXPECT_EQ(logging::test::hex(after),
            "02000000 08000000 00000000 00000000\n"
            "00000000 00000000 00000000 00000000\n"
            "01000000 00000000 02000000 00000000\n"
            "03000000 00000000 38373635 34333231\n"
            "48474645 44434241 58575655 54535251\n"
            "00000000 00000000 00000000 00000000\n"
            "00000000 00000000 00000000 0000");
}

TEST_F(LeafTest, KeysAreOrderedByHighThenLowAndHaveNeighbours) {
  EXPECT_LT((IndexKey{1, UINT64_MAX}), (IndexKey{2, 0}));
  EXPECT_EQ((IndexKey{1, UINT64_MAX}.after()), (IndexKey{2, 0}));
  EXPECT_EQ((IndexKey{2, 0}.before()), (IndexKey{1, UINT64_MAX}));
  EXPECT_EQ((IndexKey{2, 5}.after().before()), (IndexKey{2, 5}));
}

TEST_F(LeafTest, OfOneKeyTheLastPendingCounts) {
  insert({2, 0}, 1);
  insert({1, 0}, 2);
  insert({2, 0}, 3);
  erase({1, 0});
  const auto pending = sorted_pending(PendingModifications(pool_, &queue_), {}, IndexKey::max());
  ASSERT_EQ(pending.size(), 2u);
  EXPECT_EQ(pending[0].key, (IndexKey{1, 0}));
  EXPECT_EQ(pending[0].value, nullptr);
  EXPECT_EQ(load_le<std::uint64_t>(pending[1].value), 3u);
  EXPECT_TRUE(sorted_pending(PendingModifications(pool_, &queue_), {3, 0}, {4, 0}).empty());
}

TEST_F(LeafTest, CommitsAgreeWithAMap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    model_.clear();
    Bytes before;
    const std::uint64_t keys = 1 + random() % 60;
    for (int commits = 0; commits < 4; ++commits) {
      for (std::uint64_t i = random() % 40; i > 0; --i) {
        const IndexKey key{random() % keys, random() % 2};
        random() % 3 == 0 ? erase(key) : insert(key, random());
      }
      const std::vector<Bytes> blocks = commit(before);
      std::vector<std::pair<IndexKey, std::uint64_t>> all;
      for (const Bytes& block : blocks) {
        ASSERT_TRUE(is_leaf(block, kShape));
        const auto part = records(block);
        ASSERT_TRUE(!part.empty() || blocks.size() == 1);
        all.insert(all.end(), part.begin(), part.end());
      }
      ASSERT_EQ(all,
                (std::vector<std::pair<IndexKey, std::uint64_t>>(model_.begin(), model_.end())));
      // One of them goes on.
      before = blocks[random() % blocks.size()];
      model_.clear();
      for (const auto& [key, value] : records(before)) model_[key] = value;
    }
  }
}

TEST_F(LeafTest, WhatFitsIsNotDivided) {
  const Bytes full = leaf_of(kShape.capacity());
  EXPECT_EQ(counts({full}), std::vector<std::uint32_t>{19});
  erase({1, 0});
  insert({2, 0}, 22);
  insert({100, 0}, 1);
  EXPECT_EQ(counts(commit(full)), std::vector<std::uint32_t>{19});
}

TEST_F(LeafTest, IsDividedEvenlyWithRoomForMore) {
  const Bytes full = leaf_of(19, 10);
  insert({55, 0}, 1);
  EXPECT_EQ(counts(commit(full)), (std::vector<std::uint32_t>{10, 10}));
  for (std::uint64_t i = 0; i < 30; ++i) insert({i * 10 + 3, 0}, i);
  EXPECT_EQ(counts(commit(full)), (std::vector<std::uint32_t>{13, 12, 12, 12}));
}

TEST_F(LeafTest, WhatIsAppendedFillsBlockAfterBlock) {
  const Bytes before = leaf_of(10);
  for (std::uint64_t i = 11; i <= 45; ++i) insert({i, 0}, i);
  EXPECT_EQ(counts(commit(before)), (std::vector<std::uint32_t>{19, 19, 7}));
}

TEST_F(LeafTest, ExpiredRecordsAreLeftOutStoredAndPending) {
  const Bytes before = leaf_of(18);
  for (std::uint64_t i = 19; i <= 27; ++i) insert({i, 0}, i);
  const Filter filter;
  const std::vector<Bytes> blocks = commit(before, &filter);
  ASSERT_EQ(blocks.size(), 1u) << "27 without 9 fit";
  const auto kept = records(blocks[0]);
  EXPECT_EQ(kept.size(), 18u);
  for (const auto& [key, value] : kept) EXPECT_NE(key.high % 3, 0u);
}

TEST_F(LeafTest, WalksBothWaysWithWhatIsPending) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    model_.clear();
    for (std::uint64_t i = random() % 19; i > 0; --i) insert({random() % 20, 0}, random());
    const Bytes contents = commit({}).at(0);
    for (std::uint64_t i = random() % 20; i > 0; --i) {
      const IndexKey key{random() % 20, 0};
      random() % 2 == 0 ? erase(key) : insert(key, random());
    }
    const IndexKey low{random() % 20, 0};
    const IndexKey high = random() % 5 == 0 ? IndexKey::max() : IndexKey{random() % 25, 0};
    std::vector<std::pair<IndexKey, std::uint64_t>> expected;
    for (const auto& record : model_) {
      if (record.first >= low && record.first <= high) expected.push_back(record);
    }
    const auto pending = sorted_pending(PendingModifications(pool_, &queue_), low, high);
    for (const bool descending : {false, true}) {
      if (descending) std::ranges::reverse(expected);
      const std::size_t enough = random() % 30;
      std::vector<std::pair<IndexKey, std::uint64_t>> seen;
      const bool ended = walk_leaf(Leaf(contents, kShape), pending, low, high, descending,
                                   [&](IndexKey key, const std::byte* value) {
                                     seen.emplace_back(key, load_le<std::uint64_t>(value));
                                     return seen.size() != enough;
                                   });
      if (enough > 0 && enough <= expected.size()) {
        EXPECT_FALSE(ended);
        ASSERT_EQ(seen.size(), enough);
        EXPECT_TRUE(std::equal(seen.begin(), seen.end(), expected.begin()));
      } else {
        EXPECT_TRUE(ended);
        ASSERT_EQ(seen, expected);
      }
    }
    pool_.clear(queue_);
  }
}

TEST_F(LeafTest, AnEmptyOneHasNoRecords) {
  const Leaf leaf({}, kShape);
  EXPECT_EQ(leaf.count(), 0u);
  EXPECT_EQ(leaf.lower_bound({1, 0}), 0u);
  EXPECT_EQ(counts(commit({})), std::vector<std::uint32_t>{0});
}

TEST_F(LeafTest, AppliedInPlaceIsAsCommitted) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const Bytes before = leaf_of(static_cast<std::uint32_t>(random() % 19), 2);
    Bytes applied = before;
    for (std::uint64_t i = random() % 30; i > 0; --i) {
      const IndexKey key{random() % 40, 0};
      const Bytes change = random() % 2 == 0 ? modification(key) : modification(key, random());
      if (!apply_to_leaf(applied, change, kShape)) break;
      pool_.append(queue_, change);
    }
    const std::vector<Bytes> committed = commit(before);
    ASSERT_EQ(committed.size(), 1u);
    ASSERT_EQ(logging::test::hex(applied), logging::test::hex(committed[0]));
  }
}

TEST_F(LeafTest, AFullOneTakesNoNewKeyInPlace) {
  Bytes full = leaf_of(19, 2);
  const Bytes before = full;
  EXPECT_FALSE(apply_to_leaf(full, modification({3, 0}, 1), kShape));
  EXPECT_EQ(full, before);
  EXPECT_TRUE(apply_to_leaf(full, modification({4, 0}, 99), kShape));
  EXPECT_TRUE(apply_to_leaf(full, modification({5, 0}), kShape)) << "nothing goes";
  EXPECT_EQ(records(full)[1].second, 99u);
  EXPECT_TRUE(apply_to_leaf(full, modification({38, 0}), kShape));
  EXPECT_TRUE(apply_to_leaf(full, modification({3, 0}, 1), kShape));
  EXPECT_TRUE(is_leaf(full, kShape));
}

TEST_F(LeafTest, WhatIsNoLeafIsTold) {
  const Bytes good = leaf_of(5);
  ASSERT_TRUE(is_leaf(good, kShape));
  EXPECT_FALSE(is_leaf(std::span(good).first(499), kShape));
  EXPECT_FALSE(is_leaf(good, {500, 9})) << "values of another length";
  Bytes bad = good;
  store_le<std::uint32_t>(bad.data(), 20);
  EXPECT_FALSE(is_leaf(bad, kShape)) << "more than fit";
  EXPECT_EQ(Leaf(bad, kShape).count(), 19u) << "and not read behind its end";
  bad = good;
  store_key(bad.data() + kLeafHeaderBytes + 24, {1, 0});
  EXPECT_FALSE(is_leaf(bad, kShape)) << "the same key twice";
}

}  // namespace
}  // namespace mariner::index
