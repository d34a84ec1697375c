#include "tests/bench/page_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 8;  // of memory

class PageCacheTest : public testing::Test {
 protected:
  std::byte add(std::uint8_t mark) {
    const PageCache::Address address = pages_.add_page();
    pages_.change(address)[0] = std::byte{mark};
    return std::byte{mark};
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{executor_, {.size_bytes = 1024 * kPage}};
  PageCache pages_{disk_, {.page_bytes = kPage, .bytes_max = kPages * kPage}};
};

TEST_F(PageCacheTest, KeepsToItsMemoryAndWritesADirtyVictimFirst) {
  for (std::uint8_t i = 0; i < 3 * kPages; ++i) add(i);
  EXPECT_EQ(pages_.memory_bytes(), kPages * kPage);
  EXPECT_EQ(pages_.counts().writes, 2 * kPages);
  EXPECT_EQ(pages_.counts().reads, 0u);
  EXPECT_EQ(pages_.file_bytes(), 3 * kPages * kPage);
  for (std::uint8_t i = 0; i < 3 * kPages; ++i) EXPECT_EQ(pages_.view({i})[0], std::byte{i});
  EXPECT_GE(pages_.counts().reads, 2 * kPages);
}

TEST_F(PageCacheTest, ACleanVictimIsNotWritten) {
  for (std::uint8_t i = 0; i < 2 * kPages; ++i) add(i);
  pages_.write_back();
  const std::uint64_t writes = pages_.counts().writes;
  for (std::uint8_t i = 0; i < 2 * kPages; ++i) EXPECT_EQ(pages_.view({i})[0], std::byte{i});
  EXPECT_EQ(pages_.counts().writes, writes);
}

TEST_F(PageCacheTest, WhatIsLookedAtAgainStays) {
  for (std::size_t i = 0; i < 4 * kPages; ++i) {
    static_cast<void>(pages_.add_page());
    static_cast<void>(pages_.view({0}));
  }
  EXPECT_EQ(pages_.counts().reads, 0u);
  static_cast<void>(pages_.view({1}));
  EXPECT_EQ(pages_.counts().reads, 1u);
}

TEST_F(PageCacheTest, NeighboursAreWrittenTogetherAndAreDurable) {
  for (std::uint8_t i = 0; i < kPages; ++i) add(i);
  pages_.write_back();
  EXPECT_EQ(pages_.counts().writes, 1u);
  for (const std::uint32_t i : {1u, 2u, 5u}) pages_.change({i})[1] = std::byte{1};
  pages_.write_back();
  EXPECT_EQ(pages_.counts().writes, 3u);
  EXPECT_EQ(pages_.counts().bytes_written, (kPages + 3) * kPage);
  disk_.cut_power();
  disk_.restore_power();
  for (std::uint8_t i = kPages; i < 3 * kPages; ++i) add(i);
  EXPECT_EQ(pages_.view({5})[1], std::byte{1});
}

TEST_F(PageCacheTest, LoadsPastTheCacheInLargeWrites) {
  constexpr std::uint32_t kLoaded = 2 * PageCache::kTransferBytesMax / kPage + 1;
  for (std::uint32_t i = 0; i < kLoaded; ++i) {
    const PageCache::Loaded page = pages_.load_page();
    EXPECT_EQ(page.address.value, i);
    EXPECT_EQ(page.contents.size(), pages_.contents_bytes());
    page.contents[0] = static_cast<std::byte>(i % 251);
  }
  pages_.end_load();
  EXPECT_EQ(pages_.counts().writes, 3u);
  EXPECT_EQ(pages_.memory_bytes(), 0u);
  for (std::uint32_t i = 0; i < kLoaded; ++i) {
    EXPECT_EQ(pages_.view({i})[0], static_cast<std::byte>(i % 251));
  }
}

using PageCacheDeathTest = PageCacheTest;

TEST_F(PageCacheDeathTest, ADamagedPageIsNotBelieved) {
  for (std::uint8_t i = 0; i < 2 * kPages; ++i) add(i);
  disk_.flip_bit(100, 3);
  EXPECT_DEATH(static_cast<void>(pages_.view({0})), "kNone");
}

TEST_F(PageCacheDeathTest, AFileThatIsFullEndsIt) {
  for (int i = 0; i < 1024; ++i) static_cast<void>(pages_.add_page());
  EXPECT_DEATH(static_cast<void>(pages_.add_page()), "outgrown");
}

}  // namespace
}  // namespace mariner::bench
