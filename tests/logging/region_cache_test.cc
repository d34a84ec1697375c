#include "logging/region_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace mariner::logging {
namespace {

RegionBytes filled(std::size_t size, std::uint8_t value) {
  RegionBytes bytes = RegionBytes::allocate(size);
  std::ranges::fill(bytes.unshared(), std::byte{value});
  return bytes;
}

TEST(RegionCache, FindsWhatWasInsertedByPackAndRegion) {
  RegionCache cache(1000);
  cache.insert(1, 7, filled(10, 0x17));
  cache.insert(2, 7, filled(20, 0x27));
  EXPECT_FALSE(cache.find(1, 8));
  ASSERT_TRUE(cache.find(1, 7));
  EXPECT_EQ(cache.find(1, 7).bytes()[9], std::byte{0x17});
  EXPECT_EQ(cache.find(2, 7).bytes().size(), 20u);
  EXPECT_EQ(cache.bytes(), 30u);
}

TEST(RegionCache, DropsWhatWasUsedLongestAgo) {
  RegionCache cache(300);
  for (std::uint32_t region = 0; region < 3; ++region) cache.insert(1, region, filled(100, 1));
  EXPECT_TRUE(cache.find(1, 0));
  cache.insert(1, 3, filled(100, 1));
  EXPECT_TRUE(cache.find(1, 0));
  EXPECT_FALSE(cache.find(1, 1));
  EXPECT_TRUE(cache.find(1, 2));
  EXPECT_TRUE(cache.find(1, 3));
  EXPECT_EQ(cache.bytes(), 300u);
}

TEST(RegionCache, OneThatIsLargerThanAllOfItIsNotKept) {
  RegionCache cache(300);
  cache.insert(1, 0, filled(100, 1));
  cache.insert(1, 1, filled(301, 1));
  EXPECT_TRUE(cache.find(1, 0));
  EXPECT_FALSE(cache.find(1, 1));
  cache.insert(1, 2, filled(300, 1));
  EXPECT_FALSE(cache.find(1, 0));
  EXPECT_EQ(cache.bytes(), 300u);
}

TEST(RegionCache, WhatWasThereStays) {
  RegionCache cache(300);
  cache.insert(1, 0, filled(100, 1));
  cache.insert(1, 0, filled(100, 2));
  EXPECT_EQ(cache.find(1, 0).bytes()[0], std::byte{1});
  EXPECT_EQ(cache.bytes(), 100u);
}

TEST(RegionCache, AReaderKeepsARegionThatWasDropped) {
  RegionCache cache(100);
  cache.insert(1, 0, filled(100, 5));
  const RegionBytes held = cache.find(1, 0);
  cache.insert(1, 1, filled(100, 6));
  EXPECT_FALSE(cache.find(1, 0));
  EXPECT_EQ(held.bytes()[99], std::byte{5});
}

TEST(RegionCache, ForgetsOnePack) {
  RegionCache cache(1000);
  for (std::uint32_t region = 0; region < 4; ++region) {
    cache.insert(region % 2, region, filled(100, 1));
  }
  cache.forget(1);
  EXPECT_TRUE(cache.find(0, 0));
  EXPECT_FALSE(cache.find(1, 1));
  EXPECT_TRUE(cache.find(0, 2));
  EXPECT_FALSE(cache.find(1, 3));
  EXPECT_EQ(cache.bytes(), 200u);
  cache.forget(9);
  EXPECT_EQ(cache.bytes(), 200u);
}

TEST(RegionCache, ServesManyThreads) {
  RegionCache cache(1000);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (std::uint32_t i = 0; i < 2000; ++i) {
        const std::uint32_t region = (i * (t + 1)) % 16;
        if (const RegionBytes found = cache.find(3, region)) {
          EXPECT_EQ(found.bytes()[0], static_cast<std::byte>(region));
        } else {
          cache.insert(3, region, filled(100, static_cast<std::uint8_t>(region)));
        }
        if (i % 500 == 499) cache.forget(3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), 1000u);
}

}  // namespace
}  // namespace mariner::logging
