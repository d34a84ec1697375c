#include "ifsck/packed_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "ifsck/block_table.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Entries = std::vector<PackedTable::Entry>;

Entries listed(std::span<const PackedTable::Entry> entries) {
  return {entries.begin(), entries.end()};
}

PackedTable again(const Entries& entries) {
  return PackedTable::parse(PackedTable::pack(entries)).value();
}

Entries many(std::size_t count) {
  std::mt19937_64 random(count);
  Entries entries;
  FsBlock block = 0;
  for (std::size_t i = 0; i < count; ++i) {
    block += 1 + random() % (i % 3 == 0 ? 1'000'000 : 5);
    entries.push_back({block, static_cast<std::uint32_t>(random() >> (i % 64))});
  }
  return entries;
}

TEST(PackedTableTest, IsWhatWasPacked) {
  for (const std::size_t count : {0, 1, 2, 63, 64, 65, 128, 1000, 5000}) {
    const Entries entries = many(count);
    EXPECT_EQ(again(entries).size(), count);
    EXPECT_EQ(listed(again(entries).all()), entries) << count;
  }
  const Entries any{{0, UINT32_MAX}, {1, 0}, {127, 1u << 31}, {255, 1}, {UINT64_MAX, 2}};
  EXPECT_EQ(listed(again(any).all()), any);
}

TEST(PackedTableTest, StandsInTheFileAsTheFormatSays) {
  constexpr unsigned char kBytes[] = {2, 0, 0,  0, 0, 0, 0, 0, 100, 0, 0,    0, 0, 0,
                                      0, 0, 12, 0, 0, 0, 3, 0, 0,   0, 0xc9, 1, 1};
  const std::vector<std::byte> packed = PackedTable::pack(Entries{{100, 12}, {200, 11}});
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(kBytes)), packed));
  // What follows and has the same other number takes one byte.
  EXPECT_EQ(PackedTable::pack(Entries{{100, 12}, {163, 12}, {164, 12}}).size(), 8u + 16 + 2);
}

TEST(PackedTableTest, WhatIsLookedForIsFoundWhereverItStands) {
  const Entries entries = many(1000);
  for (const auto& [block, value] : entries) {
    PackedTable table = again(entries);
    ASSERT_NE(table.find(block), nullptr) << block;
    EXPECT_EQ(*table.find(block), value);
  }
  PackedTable table = again(entries);
  EXPECT_EQ(table.find(entries.front().first - 1), nullptr);
  EXPECT_EQ(table.find(entries.back().first + 1), nullptr);
  EXPECT_EQ(again({}).find(5), nullptr);
}

TEST(PackedTableTest, RangesAreThoseOfATableThatIsNotPacked) {
  const Entries entries = many(1000);
  BlockTable plain;
  for (const auto& [block, value] : entries) plain.add(block, value);
  std::mt19937_64 random(1);
  PackedTable table = again(entries);
  for (int i = 0; i < 2000; ++i) {
    const FsBlock first = random() % (entries.back().first + 10);
    const FsBlock end = first + random() % (i % 2 == 0 ? 100 : entries.back().first);
    EXPECT_EQ(listed(table.within(first, end)), listed(plain.within(first, end)));
    if (i % 100 == 0) table = again(entries);
  }
  EXPECT_EQ(listed(table.within(0, ~FsBlock{0})), entries);
  EXPECT_EQ(listed(table.within(7, 7)), Entries{});
  EXPECT_EQ(listed(again({}).within(0, 9)), Entries{});
}

TEST(PackedTableTest, WhatHasNotItsShapeIsNone) {
  const std::vector<std::byte> good = PackedTable::pack(many(600));
  for (std::size_t bytes = 1; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(PackedTable::parse({good.begin(), good.begin() + static_cast<long>(bytes)}))
        << bytes;
  }
  constexpr std::size_t kSecondHead = 8 + 16;
  for (const std::size_t at : {std::size_t{1}, kSecondHead + 12}) {  // how many, how many bytes
    auto bad = good;
    bad[at] ^= std::byte{0x55};
    EXPECT_FALSE(PackedTable::parse(bad)) << at;
  }
  auto descending = good;
  store_le(descending.data() + kSecondHead, std::uint64_t{0});
  EXPECT_FALSE(PackedTable::parse(descending));
}

// Behind a checksum that is right: it is not ours, and harms nobody.
TEST(PackedTableTest, EntriesThatMakeNoSenseAreAsTheOneBefore) {
  const std::vector<std::byte> good = PackedTable::pack(Entries{{100, 1}, {200, 2}, {300, 3}});
  constexpr std::size_t kEntries = 8 + 16;
  for (const auto bad : {0x00, 0xff}) {  // the same block once more; a number that does not end
    auto bytes = good;
    bytes[kEntries] = static_cast<std::byte>(bad);
    if (bad == 0xff) std::fill(bytes.begin() + kEntries, bytes.end(), std::byte{0xff});
    PackedTable table = PackedTable::parse(bytes).value();
    EXPECT_EQ(listed(table.all()), (Entries{{100, 1}, {100, 1}, {100, 1}}));
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    auto bytes = PackedTable::pack(many(700));
    const std::size_t heads = 8 + 11 * 16;
    for (int j = 0; j < 9; ++j) {
      bytes[heads + random() % (bytes.size() - heads)] = static_cast<std::byte>(random());
    }
    PackedTable table = PackedTable::parse(bytes).value();
    EXPECT_TRUE(std::ranges::is_sorted(table.all(), {}, &PackedTable::Entry::first));
    EXPECT_EQ(table.all().size(), 700u);
  }
}

TEST(PackedTableTest, ATableThatIsChangedIsUnpacked) {
  const Entries entries = many(600);
  BlockTable table(again(entries));
  const BlockTable same = table;
  EXPECT_EQ(table.size(), 600u);
  table.add(entries.back().first + 5, 7);
  table.sort();
  EXPECT_EQ(table.size(), 601u);
  EXPECT_EQ(*table.find(entries.back().first + 5), 7u);
  EXPECT_EQ(listed(same.all()), entries);
  table.erase_if([&](FsBlock block) { return block > entries.back().first; });
  EXPECT_EQ(table, same);
}

}  // namespace
}  // namespace mariner::ifsck
