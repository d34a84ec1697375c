#include "uvfs/version_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ifsck/past_behind.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

class Counting final : public ifsck::PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<void> read(std::span<const Question> questions, std::span<std::byte> to) override {
    asked += questions.size();
    return PastBehind::read(questions, to);
  }
  std::size_t asked = 0;
};

class VersionCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint64_t lbn : {100, 200, 100, 300, 100}) {
      made_.put(lbn * kBlockBytes, std::uint8_t(++value_));
    }
  }
  static int first_byte(VersionCache& cache, std::uint64_t lbn, std::uint64_t at) {
    const ifsck::Past::Question question{Lbn{lbn}, {at}};
    std::array<std::byte, kBlockBytes> block{};
    EXPECT_TRUE(cache.read(std::span(&question, 1), block).has_value());
    return std::to_integer<int>(block[0]);
  }
  MadeWrites made_{"-t ext2 -b 4096"};
  int value_ = 0;
};

TEST_F(VersionCacheTest, AVersionIsReadOnce) {
  auto past = made_.past();
  Counting counting(past);
  auto timelines = BlockTimelines::open(counting, {{}, {5}}).value();
  VersionCache cache(timelines);
  const int wanted[] = {0, 1, 1, 3, 3, 5};
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t at = 0; at < 6; ++at) {
      if (at > 0) {
        EXPECT_EQ(first_byte(cache, 100, at), wanted[at]);
      } else {
        first_byte(cache, 100, at);
      }
    }
  }
  EXPECT_EQ(counting.asked, 4u);  // before, and three writes
}

TEST_F(VersionCacheTest, WhatWasSaidBeforehandIsNotAskedForAgain) {
  auto past = made_.past();
  Counting counting(past);
  auto timelines = BlockTimelines::open(counting, {{1}, {5}}).value();
  VersionCache cache(timelines);
  const std::vector<ifsck::Past::Question> all{{Lbn{100}, {2}}, {Lbn{100}, {1}}, {Lbn{200}, {4}}};
  ASSERT_TRUE(cache.prefetch(all).has_value());
  EXPECT_EQ(counting.asked, 2u);  // no write to the first between both moments
  EXPECT_EQ(first_byte(cache, 100, 2), 1);
  EXPECT_EQ(first_byte(cache, 200, 3), 2);
  EXPECT_EQ(counting.asked, 2u);
}

TEST_F(VersionCacheTest, MoreThanItKeepsIsRead) {
  auto past = made_.past();
  auto timelines = BlockTimelines::open(past, {{}, {5}}).value();
  VersionCache cache(timelines);
  std::vector<ifsck::Past::Question> all;
  for (std::uint64_t i = 0; i < VersionCache::kBlocksMax + 100; ++i) {
    all.push_back({Lbn{i % (ifsck::MadeImage::kBytes / kBlockBytes)}, {5}});
  }
  std::vector<std::byte> bytes(all.size() * kBlockBytes);
  ASSERT_TRUE(cache.read(all, bytes).has_value());
  EXPECT_EQ(std::to_integer<int>(bytes[100 * kBlockBytes]), 5);
  EXPECT_EQ(std::to_integer<int>(bytes[200 * kBlockBytes]), 2);
}

}  // namespace
}  // namespace mariner::uvfs
