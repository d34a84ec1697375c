// An engine beside a map that says what it must answer: every engine is put to the same.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/bench/index_engine.h"
#include "tests/bench/index_workload.h"

namespace mariner::bench {

class IndexEngineModel {
 public:
  struct Options {
    std::uint64_t blocks = 20'000;
    std::uint64_t seed = 1;
  };
  IndexEngineModel(IndexEngine& engine, const Options& options)
      : engine_(engine), options_(options), random_(options.seed) {}

  // The first `count` versions of the workload, in bulk.
  void load(std::uint64_t count) {
    BlockWorkload blocks(
        {.pattern = BlockWorkload::Pattern::kUniform, .blocks = options_.blocks, .seed = 7});
    std::vector<BenchVersion> by_time;
    for (std::uint64_t i = 0; i < count; ++i) by_time.push_back(make(blocks.next()));
    auto at_block = versions_.begin();
    std::size_t at_time = 0;
    const Result<void> loaded = engine_.load(
        [&]() -> std::optional<BenchVersion> {
          if (at_block == versions_.end()) return std::nullopt;
          const auto& [key, place] = *at_block++;
          return BenchVersion{key.first, key.second, place};
        },
        [&]() -> std::optional<BenchVersion> {
          if (at_time == by_time.size()) return std::nullopt;
          return by_time[at_time++];
        });
    ASSERT_TRUE(loaded) << loaded.error().message;
  }

  void insert(BlockWorkload::Pattern pattern, std::uint64_t count) {
    BlockWorkload blocks({.pattern = pattern, .blocks = options_.blocks, .seed = random_()});
    for (std::uint64_t i = 0; i < count; ++i) {
      engine_.insert(make(blocks.next()));
      // What comes later does not change the past.
      if (i % kInsertsPerFind == 0) {
        begin_find(scaled(random_(), options_.blocks), scaled(random_(), next_));
      }
    }
    await_answers();
  }

  // Random blocks at random moments, waiting and not waiting.
  void expect_finds(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t block = scaled(random_(), options_.blocks + 10);
      const std::uint64_t sequence = random_() % 4 == 0 ? UINT64_MAX : scaled(random_(), next_ + 1);
      expect_same(engine_.find(block, sequence), find(block, sequence));
      begin_find(block, sequence);
    }
    await_answers();
  }

  void expect_scans(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = scaled(random_(), options_.blocks);
      const std::uint64_t blocks = scaled(random_(), 100);
      const auto from = versions_.lower_bound({first, 0});
      const auto to = versions_.lower_bound({first + blocks, 0});
      EXPECT_EQ(engine_.scan(first, blocks), static_cast<std::uint64_t>(std::distance(from, to)));
    }
    EXPECT_EQ(engine_.scan(0, options_.blocks), versions_.size());
  }

  // All of it, in the order in which a benchmark does it.
  void expect_all() {
    expect_finds(10);
    load(60'000);
    if (testing::Test::HasFatalFailure()) return;
    expect_finds(1'000);
    for (const auto pattern :
         {BlockWorkload::Pattern::kUniform, BlockWorkload::Pattern::kKeyRangeHot,
          BlockWorkload::Pattern::kClustered, BlockWorkload::Pattern::kSequential}) {
      insert(pattern, 30'000);
      expect_finds(1'000);
    }
    expect_scans(100);
    engine_.commit();
    expect_finds(1'000);
    expect_scans(10);
  }

 private:
  static constexpr std::uint64_t kInsertsPerFind = 20;

  void begin_find(std::uint64_t block, std::uint64_t sequence) {
    ++unanswered_;
    engine_.begin_find(
        block, sequence,
        [this, expected = find(block, sequence)](const std::optional<BenchVersion>& found) {
          expect_same(found, expected);
          --unanswered_;
        });
  }
  void await_answers() {
    while (unanswered_ > 0) engine_.poll();
  }

  BenchVersion make(std::uint64_t block) {
    const BenchVersion version{block, next_, mixed(next_)};
    ++next_;
    versions_[{version.block, version.sequence}] = version.place;
    return version;
  }

  std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) const {
    auto after = versions_.upper_bound({block, sequence});
    if (after == versions_.begin()) return std::nullopt;
    const auto& [key, place] = *--after;
    if (key.first != block) return std::nullopt;
    return BenchVersion{key.first, key.second, place};
  }

  static void expect_same(const std::optional<BenchVersion>& found,
                          const std::optional<BenchVersion>& expected) {
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!found) return;
    EXPECT_EQ(found->block, expected->block);
    EXPECT_EQ(found->sequence, expected->sequence);
    EXPECT_EQ(found->place, expected->place);
  }

  IndexEngine& engine_;
  const Options options_;
  std::mt19937_64 random_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> versions_;
  std::uint64_t next_ = 1;
  std::uint64_t unanswered_ = 0;
};

}  // namespace mariner::bench
