#include "index/sorted_pending.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace mariner::index {
namespace {

using Found = std::vector<std::pair<IndexKey, std::uint64_t>>;

class SortedPendingTest : public ::testing::Test {
 protected:
  ~SortedPendingTest() override {
    pool_.clear(first_);
    pool_.clear(second_);
  }
  void put(ModificationQueue& queue, IndexKey key, std::uint64_t value) {
    std::byte bytes[kKeyBytes + sizeof value];
    store_key(bytes, key);
    std::memcpy(bytes + kKeyBytes, &value, sizeof value);
    pool_.append(queue, bytes);
  }
  void put_some(ModificationQueue& queue, int count) {
    for (int i = 0; i < count; ++i) put(queue, {random_() % 50, 0}, random_());
  }
  [[nodiscard]] PendingModifications pending() const { return {pool_, &first_, &second_}; }
  static Found found_in(std::span<const PendingRecord> records) {
    Found found;
    for (const PendingRecord& each : records) {
      std::uint64_t value = 0;
      std::memcpy(&value, each.value, sizeof value);
      found.emplace_back(each.key, value);
    }
    return found;
  }
  // Whatever was kept: the same as sorting it now.
  void expect_right(BlockAddress address) {
    for (unsigned i = 0; i < 2 * SortedPending::kLooksFew; ++i) {
      const IndexKey low{random_() % 50, 0};
      const IndexKey high{low.high + random_() % 20, 0};
      const auto part = sorted_.look(address, pending(), low, high);
      EXPECT_EQ(found_in(part.records), found_in(sorted_pending(pending(), low, high)));
    }
  }

  std::mt19937_64 random_{7};
  ModificationPool pool_{{.chunk_bytes = 256}};
  ModificationQueue first_;
  ModificationQueue second_;
  SortedPending sorted_;
};

TEST_F(SortedPendingTest, IsWhatIsPendingNow) {
  const BlockAddress address{3};
  for (int i = 0; i < 50; ++i) {
    put_some(second_, 20);
    expect_right(address);
    const std::size_t distinct = sorted_pending(pending(), {}, IndexKey::max()).size();
    EXPECT_GE(sorted_.records_kept(), distinct);
    EXPECT_LE(sorted_.records_kept(), distinct + SortedPending::kRecentMax);
    if (i % 5 == 0) {
      // A commit takes what there is, ...
      pool_.clear(first_);
      pool_.splice(first_, std::move(second_));
      expect_right(address);
    }
    if (i % 7 == 0) {
      // ... and is done: as many as before take its place.
      const std::uint32_t count = first_.count();
      pool_.clear(first_);
      put_some(first_, static_cast<int>(count));
      expect_right(address);
    }
  }
}

TEST_F(SortedPendingTest, IsSortedAsAWholeForWhoLooksOften) {
  put_some(first_, 100);
  for (unsigned i = 0; i < SortedPending::kLooksFew; ++i) {
    EXPECT_EQ(sorted_.look({1}, pending(), {}, IndexKey::max()).all, nullptr);
  }
  const auto kept = sorted_.look({1}, pending(), {}, IndexKey::max());
  ASSERT_NE(kept.all, nullptr);
  EXPECT_EQ(sorted_.look({1}, pending(), {}, IndexKey::max()).all, kept.all);
  EXPECT_EQ(sorted_.look({2}, pending(), {}, IndexKey::max()).all, nullptr);
  put(first_, {7, 0}, 1);
  const auto more = sorted_.look({1}, pending(), {}, IndexKey::max());
  EXPECT_EQ(more.all, nullptr);
  EXPECT_EQ(more.own.size(), kept.all->size()) << "what has come stands in for what was there";
  EXPECT_EQ(sorted_.look({1}, pending(), {8, 0}, IndexKey::max()).all, kept.all) << "not there";
  for (std::uint64_t i = 0; i <= SortedPending::kRecentMax; ++i) put(first_, {100 + i, 0}, i);
  const auto again = sorted_.look({1}, pending(), {}, IndexKey::max());
  ASSERT_NE(again.all, nullptr) << "that is merged into all";
  EXPECT_EQ(again.all->size(), kept.all->size() + SortedPending::kRecentMax + 1);
  EXPECT_EQ(kept.all->size(), more.own.size()) << "who holds the one before goes on seeing that";
  EXPECT_EQ(sorted_.records_kept(), again.all->size());
  pool_.clear(first_);
  put_some(first_, 200);
  EXPECT_EQ(sorted_.look({1}, pending(), {}, IndexKey::max()).all, nullptr) << "others by now";
  EXPECT_EQ(sorted_.records_kept(), 0u);
}

TEST_F(SortedPendingTest, IsBounded) {
  for (std::uint64_t i = 0; i < 3000; ++i) put(first_, {i, 0}, i);
  for (std::uint32_t leaf = 0; leaf < 2 * SortedPending::kLeavesMax; ++leaf) {
    for (unsigned i = 0; i <= SortedPending::kLooksFew && leaf % 8 == 0; ++i) {
      const auto part = sorted_.look({leaf}, pending(), {7, 0}, {9, 0});
      EXPECT_EQ(part.records.size(), 3u);
    }
    (void)sorted_.look({leaf}, pending(), {7, 0}, {7, 0});
    ASSERT_LE(sorted_.records_kept(), SortedPending::kRecordsMax);
  }
  EXPECT_GT(sorted_.records_kept(), SortedPending::kRecordsMax / 2);
}

TEST_F(SortedPendingTest, NothingIsKeptOfWhatHasNothing) {
  for (int i = 0; i < 10; ++i) {
    const auto part = sorted_.look({1}, pending(), {}, IndexKey::max());
    EXPECT_TRUE(part.records.empty());
    EXPECT_EQ(part.all, nullptr);
  }
}

}  // namespace
}  // namespace mariner::index
