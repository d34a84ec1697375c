#include "tests/bench/vanilla_index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/bench/index_engine_model.h"

namespace mariner::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class VanillaIndexTest : public testing::TestWithParam<std::size_t> {
 protected:
  VanillaIndexTest() {
    auto created = VanillaIndex::create({.path = path_,
                                         .file_bytes = 64 * kMiB,
                                         .block_bytes = GetParam(),
                                         .memory_bytes = 2 * kMiB});
    if (created) index_ = std::move(*created);
  }
  ~VanillaIndexTest() override {
    index_.reset();
    std::filesystem::remove(path_);
  }

  const std::string path_ = testing::TempDir() + "vanilla_index_test." + std::to_string(::getpid());
  std::unique_ptr<VanillaIndex> index_;
};

TEST_P(VanillaIndexTest, AnswersLikeAMap) {
  ASSERT_NE(index_, nullptr);
  IndexEngineModel(*index_, {}).expect_all();
}

TEST_P(VanillaIndexTest, CountsWhatItReadsAndWritesAndKeepsToItsMemory) {
  ASSERT_NE(index_, nullptr);
  IndexEngineModel model(*index_, {});
  model.load(200'000);
  const EngineCounts loaded = index_->counts();
  EXPECT_EQ(loaded.reads, 0u);
  EXPECT_EQ(loaded.bytes_written, loaded.disk_bytes);
  EXPECT_LE(loaded.writes, loaded.disk_bytes / kMiB + 3);  // large ones
  // 200,000 records of 32 bytes at 70 %, and of 48 bytes at 100 %.
  EXPECT_NEAR(static_cast<double>(loaded.disk_bytes), 200'000 * (32 / 0.7 + 48), 600'000);

  model.insert(BlockWorkload::Pattern::kUniform, 10'000);
  const EngineCounts inserted = index_->counts();
  // Most leaves of LT are not among the cached: each is read, and written to make room.
  EXPECT_GT(inserted.reads, 5'000u);
  EXPECT_EQ(inserted.bytes_read, inserted.reads * GetParam());
  EXPECT_GT(inserted.writes - loaded.writes, 5'000u);
  EXPECT_LE(inserted.memory_bytes, 2 * kMiB);
  EXPECT_GT(inserted.node_bytes, 0u);
}

TEST_P(VanillaIndexTest, ASecondCommitHasNothingToWrite) {
  ASSERT_NE(index_, nullptr);
  IndexEngineModel model(*index_, {});
  model.insert(BlockWorkload::Pattern::kUniform, 1'000);
  EXPECT_EQ(index_->counts().writes, 0u);
  index_->commit();
  const std::uint64_t writes = index_->counts().writes;
  EXPECT_GT(writes, 0u);
  index_->commit();
  EXPECT_EQ(index_->counts().writes, writes);
}

INSTANTIATE_TEST_SUITE_P(BlockBytes, VanillaIndexTest, testing::Values(4096, 16384));

TEST(VanillaIndexCreationTest, AFileThatCannotBeMadeIsAnError) {
  EXPECT_FALSE(VanillaIndex::create(
      {.path = testing::TempDir() + "no/such/folder", .file_bytes = kMiB, .memory_bytes = kMiB}));
}

}  // namespace
}  // namespace mariner::bench
