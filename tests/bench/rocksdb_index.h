// RocksDB as a rival: the version index as two column families of one database, tuned for it as a
// careful user would, within the memory it is given.
//
// One has keys {sequence, block} and values of 32 bytes, the other {block, sequence} and 16 bytes;
// keys are big-endian. No write-ahead log: Mariner's log is one already.
//
// One thread drives it; RocksDB's own threads flush and compact, and one more answers begin_find().
// An error of RocksDB ends the program.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/counting_file_system.h"
#include "tests/bench/index_engine.h"
#include "tests/bench/rocksdb_tuning.h"

namespace mariner::bench {

class RocksDbIndex final : public IndexEngine {
 public:
  // begin_find() waits while so many wait for the reader.
  static constexpr std::size_t kFindsMax = 1024;

  static Result<std::unique_ptr<RocksDbIndex>> create(const RocksDbOptions& options);
  ~RocksDbIndex() override;
  RocksDbIndex(const RocksDbIndex&) = delete;
  RocksDbIndex& operator=(const RocksDbIndex&) = delete;

  // Says so if the library is one with assertions: its CPU time says little then.
  [[nodiscard]] std::string name() const override;
  Result<void> load(const Next& next_by_block, const Next& next_by_time) override;
  void insert(const BenchVersion& version) override;
  std::optional<BenchVersion> find(std::uint64_t block, std::uint64_t sequence) override;
  void begin_find(std::uint64_t block, std::uint64_t sequence,
                  std::function<void(std::optional<BenchVersion>)> done) override;
  void poll() override;
  std::uint64_t scan(std::uint64_t first, std::uint64_t blocks) override;
  // Flushes the memtables; compactions that this makes due go on behind it.
  void commit() override;
  // node_bytes is 0: indexes and filters are blocks of the cache.
  [[nodiscard]] EngineCounts counts() const override;

 private:
  enum Family { kByTime, kByBlock, kFamilies };
  struct Find {
    std::uint64_t block = 0;
    std::uint64_t sequence = 0;
    std::function<void(std::optional<BenchVersion>)> done;
    std::optional<BenchVersion> answer;
  };

  explicit RocksDbIndex(const RocksDbOptions& options);
  Result<void> open();
  [[nodiscard]] rocksdb::ColumnFamilyOptions family_options(Family family) const;
  Result<void> load_family(Family family, const Next& next);
  void write_pending();
  // Any thread.
  std::optional<BenchVersion> find_stored(std::uint64_t block, std::uint64_t sequence) const;
  std::optional<BenchVersion> find_pending(std::uint64_t block, std::uint64_t sequence) const;
  void answer_finds(std::stop_token stop);
  [[nodiscard]] std::uint64_t property(const std::string& name) const;

  const RocksDbOptions options_;
  FileCounts file_counts_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::Cache> cache_;
  rocksdb::DBOptions db_options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::vector<BenchVersion> pending_;
  rocksdb::WriteBatch batch_;

  std::mutex mutex_;
  std::condition_variable_any asked_;
  std::condition_variable taken_;
  std::deque<Find> questions_;
  std::vector<Find> answers_;
  std::size_t finds_ = 0;  // begun and not handed back; the owner's
  std::jthread reader_;
};

}  // namespace mariner::bench
