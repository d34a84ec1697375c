#include "tests/bench/rocksdb_tuning.h"

#include <gtest/gtest.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

namespace mariner::bench {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;

class RocksDbTuningTest : public testing::Test {
 protected:
  static const rocksdb::BlockBasedTableOptions& table_of(
      const rocksdb::ColumnFamilyOptions& family) {
    return *family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  }
  const std::shared_ptr<rocksdb::Cache> cache_ = rocksdb::NewLRUCache(kMemory);
};

TEST_F(RocksDbTuningTest, MemtablesHaveTheirShareOfTheOneMemory) {
  const RocksDbOptions options{.memory_bytes = kMemory, .write_buffer_percent = 25};
  const auto db = tuned_db(options, rocksdb::Env::Default(), cache_);
  EXPECT_NEAR(static_cast<double>(db.write_buffer_manager->buffer_size()), kMemory / 4, 100);
  EXPECT_TRUE(db.write_buffer_manager->cost_to_cache());
  for (const auto& family : {tuned_by_time(options, cache_), tuned_by_block(options, cache_)}) {
    EXPECT_NEAR(static_cast<double>(family.write_buffer_size), kMemory / 16, 100);
    EXPECT_EQ(table_of(family).block_cache, cache_);
    EXPECT_TRUE(table_of(family).cache_index_and_filter_blocks);
  }
}

TEST_F(RocksDbTuningTest, BlocksAreAlignedUnlessTheyAreCompressed) {
  EXPECT_TRUE(table_of(tuned_by_block({.memory_bytes = kMemory}, cache_)).block_align);
  const auto compressed = tuned_by_block(
      {.memory_bytes = kMemory, .compression = RocksDbOptions::Compression::kLz4}, cache_);
  EXPECT_FALSE(table_of(compressed).block_align);
  EXPECT_EQ(compressed.compression, rocksdb::kLZ4Compression);
}

TEST_F(RocksDbTuningTest, CompactsAsAsked) {
  EXPECT_EQ(tuned_by_time({.memory_bytes = kMemory}, cache_).compaction_style,
            rocksdb::kCompactionStyleLevel);
  EXPECT_EQ(
      tuned_by_time({.memory_bytes = kMemory, .compaction = RocksDbOptions::Compaction::kUniversal},
                    cache_)
          .compaction_style,
      rocksdb::kCompactionStyleUniversal);
}

}  // namespace
}  // namespace mariner::bench
