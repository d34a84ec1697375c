#include "tests/bench/rocksdb_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/bench/index_engine_model.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class RocksDbIndexTest : public testing::Test {
 protected:
  ~RocksDbIndexTest() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<RocksDbIndex> create(RocksDbOptions options) {
    options.path = path_;
    if (options.memory_bytes == 0) options.memory_bytes = 8 * kMiB;
    auto created = RocksDbIndex::create(options);
    EXPECT_TRUE(created) << (created ? "" : created.error().message);
    return created ? std::move(*created) : nullptr;
  }

  const std::string path_ = testing::TempDir() + "rocksdb_index_test." + std::to_string(::getpid());
};

TEST_F(RocksDbIndexTest, AnswersLikeAMap) {
  const auto index = create({});
  ASSERT_NE(index, nullptr);
  IndexEngineModel(*index, {}).expect_all();
}

TEST_F(RocksDbIndexTest, AnswersLikeAMapWithoutBatchesAndWithAllFilters) {
  const auto index = create({.versions_per_batch = 1, .finds_hit = false});
  ASSERT_NE(index, nullptr);
  IndexEngineModel(*index, {}).expect_all();
}

TEST_F(RocksDbIndexTest, ItsNameTellsWhatItIs) {
  const auto index = create({.compaction = RocksDbOptions::Compaction::kUniversal});
  ASSERT_NE(index, nullptr);
  EXPECT_THAT(index->name(), testing::MatchesRegex("RocksDB( with assertions)?, universal"));
}

TEST_F(RocksDbIndexTest, AnswersLikeAMapUniversallyCompactedAndCompressed) {
  const auto index = create({.compaction = RocksDbOptions::Compaction::kUniversal,
                             .compression = RocksDbOptions::Compression::kLz4});
  ASSERT_NE(index, nullptr);
  IndexEngineModel(*index, {}).expect_all();
}

TEST_F(RocksDbIndexTest, AnswersLikeAMapWithTheNewestFirst) {
  const auto index = create({.finds_hit = false, .newest_first = true});
  ASSERT_NE(index, nullptr);
  IndexEngineModel(*index, {}).expect_all();
}

TEST_F(RocksDbIndexTest, CountsWhatItReadsAndWritesAndKeepsToItsMemory) {
  const auto index = create({});
  ASSERT_NE(index, nullptr);
  IndexEngineModel model(*index, {});
  model.load(200'000);
  const EngineCounts loaded = index->counts();
  EXPECT_GE(loaded.bytes_written, loaded.disk_bytes);
  EXPECT_GT(loaded.disk_bytes, 200'000u * 24);  // keys share their beginnings
  model.insert(BlockWorkload::Pattern::kUniform, 50'000);
  EXPECT_LE(index->counts().memory_bytes, 9 * kMiB);
  index->commit();
  const EngineCounts committed = index->counts();
  EXPECT_GE(committed.bytes_written - loaded.bytes_written, 50'000u * 24);
  model.expect_finds(1'000);
  const EngineCounts found = index->counts();
  EXPECT_GT(found.reads, committed.reads);
  EXPECT_LE(found.memory_bytes, 9 * kMiB);
}

// Half of the blocks have versions; the other half is asked for.
TEST_F(RocksDbIndexTest, FiltersOfAllLevelsSaveReadsOfBlocksWithoutVersions) {
  constexpr std::uint64_t kVersions = 300'000;
  constexpr std::uint64_t kFinds = 1'000;
  const auto reads_with = [&](bool finds_hit) {
    const auto index = create({.memory_bytes = 3 * kMiB, .finds_hit = finds_hit});
    std::uint64_t next = 0;
    EXPECT_TRUE(index->load(
        [&]() -> std::optional<BenchVersion> {
          if (next == kVersions) return std::nullopt;
          ++next;
          return BenchVersion{.block = 2 * next, .sequence = next, .place = next};
        },
        [] { return std::nullopt; }));
    const std::uint64_t before = index->counts().reads;
    for (std::uint64_t i = 0; i < kFinds; ++i) {
      EXPECT_FALSE(index->find(2 * scaled(mixed(i), kVersions) + 1, UINT64_MAX));
    }
    return index->counts().reads - before;
  };
  EXPECT_GT(reads_with(true), kFinds / 2);
  EXPECT_LT(reads_with(false), kFinds / 4);
}

// A find is answered later, but only to its owner's calls.
TEST_F(RocksDbIndexTest, HandsOverAnswersWhenPolled) {
  const auto index = create({});
  ASSERT_NE(index, nullptr);
  index->insert({.block = 5, .sequence = 1, .place = 50});
  bool answered = false;
  index->begin_find(5, 9, [&](std::optional<BenchVersion> found) {
    answered = true;
    ASSERT_TRUE(found);
    EXPECT_EQ(found->place, 50u);
  });
  EXPECT_FALSE(answered);
  while (!answered) index->poll();
}

TEST_F(RocksDbIndexTest, TakesMoreFindsThanItsQueueHolds) {
  const auto index = create({});
  ASSERT_NE(index, nullptr);
  constexpr std::size_t kFinds = 2 * RocksDbIndex::kFindsMax;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < kFinds; ++i) {
    index->begin_find(i, 9, [&](std::optional<BenchVersion> found) {
      EXPECT_FALSE(found);
      ++answered;
    });
  }
  while (answered < kFinds) index->poll();
}

TEST_F(RocksDbIndexTest, AFolderThatCannotBeMadeIsAnError) {
  EXPECT_FALSE(RocksDbIndex::create({.path = path_ + "/no/such", .memory_bytes = kMiB}));
}

}  // namespace
}  // namespace mariner::bench
