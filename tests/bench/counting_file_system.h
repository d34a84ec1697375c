// RocksDB's file system, with its reads and writes counted as they reach the kernel: lookups,
// flushes, compactions, ingestion and bookkeeping alike, with what direct I/O reads around them.
//
// RocksDB's own tickers tell flushes and compactions apart but count neither calls nor alignment.
// Thread-safe.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace mariner::bench {

struct FileCounts {
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> bytes_written{0};

  void read(std::uint64_t bytes) {
    reads.fetch_add(1, std::memory_order_relaxed);
    bytes_read.fetch_add(bytes, std::memory_order_relaxed);
  }
  void written(std::uint64_t bytes) {
    writes.fetch_add(1, std::memory_order_relaxed);
    bytes_written.fetch_add(bytes, std::memory_order_relaxed);
  }
};

class CountingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  // `counts` outlives it and the files that it opened.
  CountingFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, FileCounts& counts)
      : FileSystemWrapper(target), counts_(counts) {}

  [[nodiscard]] const char* Name() const override { return "CountingFileSystem"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;

 private:
  FileCounts& counts_;
};

}  // namespace mariner::bench
