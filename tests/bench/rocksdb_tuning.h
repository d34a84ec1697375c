// RocksDB's options for the version index, as a careful user would set them within a given memory.
//
// Direct I/O throughout. Memtables, blocks, indexes and filters live on one budget, that of the
// block cache: a WriteBufferManager charges to it what memtables take. The family by block has
// prefix Bloom filters (8 bytes: the block), in memtables and files.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <cstddef>
#include <memory>
#include <string>

namespace mariner::bench {

inline constexpr std::size_t kBlockPrefixBytes = 8;
inline constexpr std::size_t kSortedFileBytesMax = std::size_t{64} << 20;

struct RocksDbOptions {
  enum class Compaction { kLevel, kUniversal };
  enum class Compression { kNone, kLz4 };

  std::string path;              // of the folder; what is there is destroyed
  std::size_t memory_bytes = 0;  // memtables, block cache, indexes and filters together
  // Memtables may have so much of it: for inserts, which they turn into long sorted runs, more is
  // better; what they do not use the block cache does.
  unsigned write_buffer_percent = 50;
  // Versions in a WriteBatch, two entries each. A write has fixed costs (the writers' queue, a
  // lock, sequence numbers), and the log hands over up to 32 versions at a time: 26.9 thousand
  // instructions a version in place of 29.5 with 1 (callgrind, memtables of 60,000, a library with
  // assertions). A version is found from the moment that it is inserted, written or not.
  std::size_t versions_per_batch = 32;
  // Level: lookups read from fewer runs. Universal: less is written again.
  Compaction compaction = Compaction::kLevel;
  // kNone: no other engine here compresses, and 4 KiB blocks stand on 4 KiB boundaries then, so
  // that a lookup reads one. The padding in the values would also flatter any compression.
  Compression compression = Compression::kNone;
  // Nearly every block that is asked for has a version, so that filters of the last level, which
  // are most of all filters, tell nothing and are left out.
  bool finds_hit = true;
  // Keys by block have the complement of the sequence number: the newest version comes first and is
  // found by Seek() in place of SeekForPrev(), which takes a step back in each memtable and block:
  // 23.2 thousand instructions in place of 27.0 (measured as above, cached blocks).
  bool newest_first = false;
  unsigned background_jobs = 0;  // 0: as many as cores
};

// `env` outlives the database.
[[nodiscard]] rocksdb::DBOptions tuned_db(const RocksDbOptions& options, rocksdb::Env* env,
                                          const std::shared_ptr<rocksdb::Cache>& cache);
[[nodiscard]] rocksdb::ColumnFamilyOptions tuned_by_time(
    const RocksDbOptions& options, const std::shared_ptr<rocksdb::Cache>& cache);
[[nodiscard]] rocksdb::ColumnFamilyOptions tuned_by_block(
    const RocksDbOptions& options, const std::shared_ptr<rocksdb::Cache>& cache);

}  // namespace mariner::bench
