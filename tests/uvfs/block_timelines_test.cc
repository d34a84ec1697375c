#include "uvfs/block_timelines.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/past_behind.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

class Counting final : public ifsck::PastBehind {
 public:
  using PastBehind::PastBehind;
  Result<std::vector<Version>> versions(std::span<const Lbn> blocks, SequenceNumber from,
                                        SequenceNumber to) override {
    ++asked;
    return PastBehind::versions(blocks, from, to);
  }
  int asked = 0;
};

class BlockTimelinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint64_t lbn : {100, 200, 100, 300, 100}) {
      made_.put(lbn * kBlockBytes, std::uint8_t(++value_));
    }
  }
  static std::vector<std::uint64_t> moments(std::span<const BlockTimelines::Version> versions) {
    std::vector<std::uint64_t> all;
    for (const auto& each : versions) all.push_back(each.sequence.value);
    return all;
  }
  using Moments = std::vector<std::uint64_t>;

  MadeWrites made_{"-t ext2 -b 4096"};
  int value_ = 0;
};

TEST_F(BlockTimelinesTest, WritesOfTheStretchAreKnownOfEachBlock) {
  auto past = made_.past();
  auto timelines = BlockTimelines::open(past, {{1}, {5}}).value();
  ASSERT_TRUE(timelines.load({Lbn{200}, Lbn{100}, Lbn{100}, Lbn{7}}).has_value());
  EXPECT_EQ(moments(timelines.of(Lbn{100})), (Moments{3, 5}));
  EXPECT_EQ(moments(timelines.of(Lbn{200})), Moments{2});
  EXPECT_EQ(moments(timelines.of(Lbn{7})), Moments{});
  EXPECT_EQ(moments(timelines.of(Lbn{100}, {3}, {5})), Moments{});
  EXPECT_EQ(moments(timelines.of(Lbn{100}, {2}, {5})), Moments{3});
  EXPECT_EQ(moments(timelines.of(Lbn{100}, {3}, kEndless)), Moments{5});
  EXPECT_EQ(timelines.first_time().ns, MadeWrites::kSecond);
}

TEST_F(BlockTimelinesTest, NoBlockIsAskedForTwiceNorOneThatWasNotWritten) {
  auto past = made_.past();
  Counting counting(past);
  auto timelines = BlockTimelines::open(counting, {{}, {5}}).value();
  ASSERT_TRUE(timelines.load({Lbn{100}}).has_value());
  ASSERT_TRUE(timelines.load({Lbn{100}, Lbn{8}, Lbn{9}}).has_value());
  EXPECT_EQ(counting.asked, 1);
  std::vector<Lbn> written;
  timelines.add_written({Lbn{50}, BlockCount{200}}, written);
  timelines.add_written({Lbn{300}, BlockCount{1}}, written);
  timelines.add_written({Lbn{301}, BlockCount{1000}}, written);
  EXPECT_EQ(written, (std::vector{Lbn{100}, Lbn{200}, Lbn{300}}));
}

TEST_F(BlockTimelinesTest, ReadsAsManyAsAreAskedFor) {
  auto past = made_.past();
  const auto timelines = BlockTimelines::open(past, {{}, {5}}).value();
  std::vector<BlockTimelines::Question> questions;
  for (std::uint64_t i = 0; i < 5000; ++i) questions.push_back({Lbn{100}, {i % 6}});
  const int wanted[] = {0, 1, 1, 3, 3, 5};
  std::size_t next = 0;
  const auto read = timelines.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
    ASSERT_EQ(i, next++);
    ASSERT_EQ(block.size(), kBlockBytes);
    if (i % 6 > 0) {
      ASSERT_EQ(std::to_integer<int>(block[0]), wanted[i % 6]);
    }
  });
  EXPECT_TRUE(read.has_value());
  EXPECT_EQ(next, questions.size());
}

TEST_F(BlockTimelinesTest, WhatThePastCannotTellIsAnError) {
  auto past = made_.past();
  const auto timelines = BlockTimelines::open(past, {{}, {5}}).value();
  const BlockTimelines::Question beyond[] = {{Lbn{100}, {6}}};
  const auto read = timelines.read(beyond, [](std::size_t, std::span<const std::byte>) {});
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kOutsideWindow);
}

}  // namespace
}  // namespace mariner::uvfs
