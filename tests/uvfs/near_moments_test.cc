#include "uvfs/near_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/uvfs/counted_past.h"

namespace mariner::uvfs {
namespace {

// Of 8 blocks one is written to at each moment; nothing else can be asked.
class OneAtATime final : public ifsck::Past {
 public:
  static Lbn written_at(std::uint64_t moment) { return Lbn{moment * 7 % 8}; }
  [[nodiscard]] std::uint64_t size_bytes() const override { return 8 * kBlockBytes; }
  Result<Reach> reach() override { return Reach{{0}, {1'000'000}}; }
  Result<SequenceNumber> moment_of(VersionTime) override { return none(); }
  Result<VersionTime> time_of(SequenceNumber) override { return none(); }
  Result<void> read(std::span<const Question>, std::span<std::byte>) override { return none(); }
  Result<std::vector<Version>> versions(std::span<const Lbn>, SequenceNumber,
                                        SequenceNumber) override {
    return none();
  }
  Result<std::vector<BlockRange>> changed(SequenceNumber from, SequenceNumber to) override {
    ++asked;
    if (to.value > silent_from) return none();
    std::set<Lbn> blocks;
    for (std::uint64_t i = from.value + 1; i <= to.value && blocks.size() < 8; ++i) {
      blocks.insert(written_at(i));
    }
    std::vector<BlockRange> ranges;
    for (const Lbn each : blocks) ranges.push_back({each, {1}});
    return ranges;
  }
  int asked = 0;
  std::uint64_t silent_from = ~std::uint64_t{0};

 private:
  static Error none() { return {ErrorCode::kUnavailable, "nothing is said"}; }
};

std::vector<std::uint64_t> alike(const NearMoments& near, std::uint64_t block, std::uint64_t at) {
  std::vector<std::uint64_t> all;
  EXPECT_FALSE(near.any_alike(Lbn{block}, {at}, [&](SequenceNumber each) {
    all.push_back(each.value);
    return false;
  }));
  return all;
}

TEST(NearMomentsTest, AreAlikeWhereNothingWasWritten) {
  OneAtATime past;
  NearMoments near(past);
  std::vector<std::uint64_t> order(60);
  for (std::uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, std::mt19937(3));
  for (const std::uint64_t each : order) near.add({each});
  EXPECT_LE(past.asked, 2 * 60);
  for (std::uint64_t at = 0; at < order.size(); ++at) {
    for (std::uint64_t block = 0; block < 8; ++block) {
      std::set<std::uint64_t> wanted;
      for (std::uint64_t i = at; i > 0 && OneAtATime::written_at(i).value != block; --i) {
        wanted.insert(i - 1);
      }
      for (std::uint64_t i = at + 1; i < order.size() && OneAtATime::written_at(i).value != block;
           ++i) {
        wanted.insert(i);
      }
      const auto found = alike(near, block, at);
      EXPECT_EQ(std::set(found.begin(), found.end()), wanted) << at << " " << block;
      EXPECT_EQ(found.size(), wanted.size());
    }
  }
}

TEST(NearMomentsTest, WhatIsFarOrNotSaidIsNotAlike) {
  OneAtATime past;
  past.silent_from = 200'000;
  NearMoments near(past);
  near.add({100});
  near.add({100 + NearMoments::kWritesMax + 1});
  EXPECT_EQ(past.asked, 0);
  near.add({300'000});
  near.add({300'001});
  EXPECT_EQ(past.asked, 1);
  for (std::uint64_t block = 0; block < 8; ++block) {
    EXPECT_TRUE(alike(near, block, 100).empty());
    EXPECT_TRUE(alike(near, block, 300'001).empty());
  }
  EXPECT_TRUE(alike(near, 0, 5).empty()) << "it is none of them";
}

TEST(NearMomentsTest, TheFirstThatWillDoEnds) {
  OneAtATime past;
  NearMoments near(past);
  for (std::uint64_t i = 0; i < 5; ++i) near.add({i});
  int visited = 0;
  EXPECT_TRUE(near.any_alike(Lbn{6}, {4}, [&](SequenceNumber) { return ++visited > 0; }));
  EXPECT_EQ(visited, 1);
}

TEST(NearMomentsTest, AreBounded) {
  OneAtATime past;
  NearMoments near(past);
  for (std::uint64_t i = 0; i <= NearMoments::kMomentsMax; ++i) near.add({100'000 * i});
  EXPECT_FALSE(near.has({0}));
  EXPECT_TRUE(near.has({100'000 * NearMoments::kMomentsMax}));
}

}  // namespace
}  // namespace mariner::uvfs
