#include "uvfs/byte_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mariner::uvfs {
namespace {

using Watchers = std::vector<ByteWatch::Watcher>;
using Bytes = std::vector<std::byte>;

Watchers found(const ByteWatch& watch, Lbn block, std::initializer_list<std::size_t> changed) {
  const Bytes before(kBlockBytes);
  Bytes after = before;
  for (const std::size_t each : changed) after[each] = std::byte{1};
  Watchers all;
  watch.find(block, before, after, all);
  std::ranges::sort(all);
  return all;
}

TEST(ByteWatchTest, WhoHasReadWhatChangesIsFound) {
  ByteWatch watch;
  ASSERT_TRUE(watch.set(1, {{kBlockBytes + 10, 5}}).has_value());
  ASSERT_TRUE(watch.set(2, {{kBlockBytes + 14, 2 * kBlockBytes}}).has_value());
  EXPECT_EQ(found(watch, Lbn{1}, {}), Watchers{});
  EXPECT_EQ(found(watch, Lbn{1}, {9}), Watchers{});
  EXPECT_EQ(found(watch, Lbn{1}, {10}), Watchers{1});
  EXPECT_EQ(found(watch, Lbn{1}, {14}), (Watchers{1, 2}));
  EXPECT_EQ(found(watch, Lbn{1}, {15}), Watchers{2});
  EXPECT_EQ(found(watch, Lbn{1}, {0, kBlockBytes - 1}), Watchers{2});
  EXPECT_EQ(found(watch, Lbn{2}, {0}), Watchers{2});
  EXPECT_EQ(found(watch, Lbn{3}, {13}), Watchers{2});
  EXPECT_EQ(found(watch, Lbn{3}, {14}), Watchers{});
  EXPECT_EQ(found(watch, Lbn{0}, {14}), Watchers{});
}

TEST(ByteWatchTest, WhatIsWatchedIsWhatWasSaidLast) {
  ByteWatch watch;
  ASSERT_TRUE(watch.set(7, {{0, 10}, {100, 10}}).has_value());
  ASSERT_TRUE(watch.set(7, {{50, 10}}).has_value());
  EXPECT_EQ(found(watch, Lbn{0}, {5}), Watchers{});
  EXPECT_EQ(found(watch, Lbn{0}, {105}), Watchers{});
  EXPECT_EQ(found(watch, Lbn{0}, {55}), Watchers{7});
  ASSERT_TRUE(watch.set(7, {}).has_value());
  EXPECT_FALSE(watch.watches(Lbn{0}));
}

TEST(ByteWatchTest, ABlockIsNewOnce) {
  ByteWatch watch;
  ASSERT_TRUE(watch.set(1, {{0, 2 * kBlockBytes}}).has_value());
  EXPECT_EQ(watch.take_new(), (std::vector<Lbn>{Lbn{0}, Lbn{1}}));
  ASSERT_TRUE(watch.set(2, {{0, 1}, {3 * kBlockBytes, 1}}).has_value());
  ASSERT_TRUE(watch.set(1, {{0, kBlockBytes}}).has_value());
  EXPECT_EQ(watch.take_new(), std::vector<Lbn>{Lbn{3}});
  EXPECT_EQ(watch.take_new(), std::vector<Lbn>{});
  // And again, when nobody watched it in between.
  EXPECT_FALSE(watch.watches(Lbn{1}));
  ASSERT_TRUE(watch.set(1, {{0, 2 * kBlockBytes}}).has_value());
  EXPECT_EQ(watch.take_new(), std::vector<Lbn>{Lbn{1}});
}

}  // namespace
}  // namespace mariner::uvfs
