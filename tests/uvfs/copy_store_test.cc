#include "uvfs/copy_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace mariner::uvfs {
namespace {

using Bytes = std::vector<std::byte>;

class CopyStoreTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  Bytes random_bytes() {
    Bytes bytes(GetParam());
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    return bytes;
  }
  // As a kernel changes a block of metadata: here and there a few bytes.
  void change(Bytes& bytes) {
    for (auto places = random_() % 5; places > 0; --places) {
      const std::size_t at = random_() % bytes.size();
      const std::size_t end = std::min(at + random_() % 40, bytes.size());
      for (std::size_t i = at; i < end; ++i) bytes[i] = static_cast<std::byte>(random_());
    }
    if (random_() % 50 == 0) bytes = random_bytes();
  }
  static Bytes get(CopyStore& store, ifsck::JournalBlock from, std::uint64_t at) {
    Bytes bytes(GetParam());
    return store.get(from, SequenceNumber{at}, bytes) ? bytes : Bytes();
  }

  std::mt19937_64 random_{3};
};

TEST_P(CopyStoreTest, GivesWhatWasPutThere) {
  constexpr std::uint32_t kPlaces = 64;
  CopyStore store;
  std::map<ifsck::FsBlock, Bytes> blocks;
  std::map<std::pair<ifsck::JournalBlock, std::uint64_t>, Bytes> wanted;
  for (std::uint64_t at = 1; at <= 3000; ++at) {
    const ifsck::FsBlock block = random_() % 9;
    auto [known, first] = blocks.try_emplace(block);
    if (first) known->second = random_bytes();
    change(known->second);
    const auto place = static_cast<ifsck::JournalBlock>(at % kPlaces + 1);
    store.put(place, {at}, block, known->second);
    wanted[{place, at}] = known->second;
  }
  store.finish();
  for (const auto& [place, bytes] : wanted) {
    EXPECT_EQ(get(store, place.first, place.second), bytes);
    // Until something else comes there.
    EXPECT_EQ(get(store, place.first, place.second + kPlaces - 1), bytes);
    EXPECT_TRUE(store.has(place.first, {place.second}));
  }
  // As they were written.
  std::vector<std::pair<std::uint64_t, ifsck::JournalBlock>> order;
  for (const auto& [place, bytes] : wanted) order.emplace_back(place.second, place.first);
  std::ranges::sort(order);
  for (const auto& [at, place] : order) {
    const Bytes bytes = get(store, place, at);
    EXPECT_EQ(bytes, (wanted[{place, at}]));
  }
  EXPECT_EQ(get(store, 2, 0), Bytes());
  EXPECT_EQ(get(store, kPlaces + 1, 9999), Bytes());
  EXPECT_LT(store.bytes(), wanted.size() * GetParam() / 3);
}

TEST_P(CopyStoreTest, OfOneMomentTheLastCounts) {
  CopyStore store;
  const Bytes one = random_bytes();
  const Bytes two = random_bytes();
  store.put(5, {7}, 1, one);
  store.put(5, {7}, 2, two);
  EXPECT_EQ(get(store, 5, 7), two);
  EXPECT_EQ(get(store, 5, 6), Bytes());
}

TEST_P(CopyStoreTest, WhatHasNoRoomIsNotKnown) {
  CopyStore store;
  std::uint64_t at = 0;
  const Bytes first = random_bytes();
  store.put(1, {++at}, 0, first);
  const Bytes some = random_bytes();
  while (store.bytes() < CopyStore::kBytesMax) store.put(2, {++at}, at, some);
  const std::uint64_t full = ++at;
  store.put(1, {full}, 0, some);
  store.put(3, {++at}, 0, some);
  EXPECT_EQ(get(store, 1, full - 1), first);
  EXPECT_EQ(get(store, 1, full), Bytes());
  EXPECT_EQ(get(store, 3, at), Bytes());
  EXPECT_LE(store.bytes(), CopyStore::kBytesMax + GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, CopyStoreTest, ::testing::Values(1024, 4096, 65536));

}  // namespace
}  // namespace mariner::uvfs
