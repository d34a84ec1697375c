#include "tests/bench/page_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "proto/bytes.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::bench {
namespace {

using index::IndexKey;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kValueBytes = 16;

class PageTreeTest : public testing::Test {
 protected:
  void insert(IndexKey key, std::uint64_t number) {
    tree_.insert(key, value_of(number));
    model_[key] = number;
  }
  std::span<const std::byte> value_of(std::uint64_t number) {
    store_le(value_.data(), number);
    return value_;
  }
  void expect_find(PageTree::Range range) {
    auto after = model_.upper_bound(range.high);
    const bool is_there = after != model_.begin() && std::prev(after)->first >= range.low;
    const std::optional<PageTree::Record> found = tree_.find_last(range);
    ASSERT_EQ(found.has_value(), is_there);
    if (!is_there) return;
    EXPECT_EQ(found->key, std::prev(after)->first);
    EXPECT_EQ(load_le<std::uint64_t>(found->value.data()), std::prev(after)->second);
  }
  void expect_count(PageTree::Range range) {
    const auto from = model_.lower_bound(range.low);
    const auto to = model_.upper_bound(range.high);
    EXPECT_EQ(tree_.count(range), static_cast<std::uint64_t>(std::distance(from, to)));
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = 2048 * kPage}};
  PageCache pages_{disk_, {.page_bytes = kPage, .bytes_max = 8 * kPage}};
  PageTree tree_{pages_, kValueBytes};
  std::vector<std::byte> value_ = std::vector<std::byte>(kValueBytes);
  std::map<IndexKey, std::uint64_t> model_;
};

TEST_F(PageTreeTest, IsAMap) {
  std::mt19937_64 random(1);
  const auto key = [&] { return IndexKey{random() % 100, random() % 1000}; };
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    if (random() % 3 != 0) {
      insert(key(), i);
    } else {
      const IndexKey gone = key();
      tree_.erase(gone);
      model_.erase(gone);
    }
    const IndexKey low = key();
    expect_find({low, std::max(low, key())});
    if (i % 100 == 0) expect_count({low, std::max(low, key())});
  }
  expect_count({{}, IndexKey::max()});
  EXPECT_GT(tree_.leaves(), 100u);
}

// The range of an emptied leaf is looked at and passed.
TEST_F(PageTreeTest, FindsAndCountsAcrossLeavesThatAreEmpty) {
  for (std::uint64_t i = 0; i < 10 * tree_.shape().capacity(); ++i) insert({1, i}, i);
  ASSERT_GT(tree_.leaves(), 8u);
  for (std::uint64_t i = 10; i < 10 * tree_.shape().capacity(); ++i) {
    tree_.erase({1, i});
    model_.erase({1, i});
  }
  expect_find({{1, 0}, {1, UINT64_MAX}});
  expect_find({{1, 11}, {1, UINT64_MAX}});
  expect_count({{}, IndexKey::max()});
}

TEST_F(PageTreeTest, AscendingKeysFillTheirLeaves) {
  const std::uint64_t capacity = tree_.shape().capacity();
  for (std::uint64_t i = 0; i < 5 * capacity; ++i) insert({i, 0}, i);
  EXPECT_EQ(tree_.leaves(), 5u);
}

TEST_F(PageTreeTest, AFullLeafIsHalvedByAKeyAmongItsOwn) {
  const std::uint64_t capacity = tree_.shape().capacity();
  for (std::uint64_t i = 0; i < capacity; ++i) insert({2 * i, 0}, i);
  EXPECT_EQ(tree_.leaves(), 1u);
  insert({1, 0}, 1);
  EXPECT_EQ(tree_.leaves(), 2u);
  for (std::uint64_t i = 0; i < capacity / 2 - 1; ++i) insert({2 * i + 3, 0}, i);
  EXPECT_EQ(tree_.leaves(), 2u);
  for (std::uint64_t i = 0; i < 2 * capacity; ++i) expect_find({{i, 0}, {i, 0}});
}

TEST_F(PageTreeTest, LoadsToTheFillItIsGiven) {
  const std::uint64_t capacity = tree_.shape().capacity();
  const std::uint64_t each = capacity * 70 / 100;
  std::uint64_t next = 0;
  tree_.load(
      [&]() -> std::optional<PageTree::Record> {
        if (next == 10 * each) return std::nullopt;
        model_[{next, 3}] = next;
        const PageTree::Record record{{next, 3}, value_of(next)};
        ++next;
        return record;
      },
      70);
  EXPECT_EQ(tree_.leaves(), 10u);
  EXPECT_EQ(pages_.counts().writes, 1u);
  for (std::uint64_t i = 0; i < 10 * each; ++i) expect_find({{i, 0}, {i, UINT64_MAX}});
  // There is room between.
  for (std::uint64_t i = 0; i < capacity - each; ++i) insert({i, 2}, i);
  EXPECT_EQ(tree_.leaves(), 10u);
  expect_count({{}, IndexKey::max()});
}

TEST_F(PageTreeTest, AnEmptyTreeHasNothing) {
  EXPECT_FALSE(tree_.find_last({{}, IndexKey::max()}));
  EXPECT_EQ(tree_.count({{}, IndexKey::max()}), 0u);
  tree_.erase({1, 1});
  tree_.load([] { return std::nullopt; }, 100);
  insert({0, 0}, 1);
  expect_find({{}, IndexKey::max()});
}

}  // namespace
}  // namespace mariner::bench
