#include "tests/bench/rocksdb_tuning.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <thread>

namespace mariner::bench {
namespace {

constexpr std::size_t kReadaheadBytes = std::size_t{2} << 20;
constexpr std::size_t kSortedFileBytesMin = std::size_t{2} << 20;
constexpr double kFilterBitsPerKey = 10;
// The limit of all memtables holds two of each of the two families: one filled, one flushed.
constexpr std::size_t kMemtables = 4;

std::size_t write_buffer_bytes(const RocksDbOptions& options) {
  return options.memory_bytes / 100 * options.write_buffer_percent;
}

rocksdb::BlockBasedTableOptions table_options(const RocksDbOptions& options,
                                              const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  table.block_size = 4096;
  table.block_align = options.compression == RocksDbOptions::Compression::kNone;
  // Indexes and filters may be larger than the memory: their parts come and go like other blocks.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.pin_top_level_index_and_filter = true;
  table.cache_usage_options.options_overrides[rocksdb::CacheEntryRole::kBlockBasedTableReader] = {
      .charged = rocksdb::CacheEntryRoleOptions::Decision::kEnabled};
  return table;
}

rocksdb::ColumnFamilyOptions family_options(const RocksDbOptions& options) {
  rocksdb::ColumnFamilyOptions family;
  const std::size_t buffer = write_buffer_bytes(options) / kMemtables;
  family.write_buffer_size = buffer;
  family.max_write_buffer_number = static_cast<int>(kMemtables);
  family.target_file_size_base = std::clamp(buffer, kSortedFileBytesMin, kSortedFileBytesMax);
  family.compression = options.compression == RocksDbOptions::Compression::kLz4
                           ? rocksdb::kLZ4Compression
                           : rocksdb::kNoCompression;
  if (options.compaction == RocksDbOptions::Compaction::kUniversal) {
    family.compaction_style = rocksdb::kCompactionStyleUniversal;
  } else {
    family.level_compaction_dynamic_level_bytes = true;
    // A level 1 as large as the level 0 that is merged into it.
    family.max_bytes_for_level_base =
        buffer * static_cast<std::size_t>(family.level0_file_num_compaction_trigger);
  }
  return family;
}

}  // namespace

rocksdb::DBOptions tuned_db(const RocksDbOptions& options, rocksdb::Env* env,
                            const std::shared_ptr<rocksdb::Cache>& cache) {
  const unsigned jobs = options.background_jobs > 0
                            ? options.background_jobs
                            : std::max(std::thread::hardware_concurrency(), 2u);
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.max_background_jobs = static_cast<int>(jobs);
  db.max_subcompactions = jobs;
  db.use_direct_reads = true;
  db.use_direct_io_for_flush_and_compaction = true;
  db.compaction_readahead_size = kReadaheadBytes;
  db.avoid_flush_during_shutdown = true;  // commit() is what persists
  // One writer: no need for a memtable that many can insert into, which costs more.
  db.allow_concurrent_memtable_write = false;
  db.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(write_buffer_bytes(options), cache);
  return db;
}

rocksdb::ColumnFamilyOptions tuned_by_time(const RocksDbOptions& options,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions family = family_options(options);
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(options, cache)));
  // Keys ascend: an insert begins at the place of the last one.
  family.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  return family;
}

rocksdb::ColumnFamilyOptions tuned_by_block(const RocksDbOptions& options,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table = table_options(options, cache);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  table.partition_filters = true;
  table.whole_key_filtering = false;  // whole keys are never asked for
  rocksdb::ColumnFamilyOptions family = family_options(options);
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(kBlockPrefixBytes));
  family.memtable_prefix_bloom_size_ratio = 0.1;
  family.optimize_filters_for_hits = options.finds_hit;
  return family;
}

}  // namespace mariner::bench
